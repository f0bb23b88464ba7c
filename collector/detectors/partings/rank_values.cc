// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/rank_values.h"

#include <map>
#include <string>
#include <utility>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_values.h"
#include "collector/program/questions/deciding.h"

namespace ddpdoctor::detectors {
namespace {

/// "iteration 3 of 8" and "ended, of 8 in all": 8; nothing if the total is unknown.
std::string total_of(const std::string& text) {
  const std::size_t of = text.rfind(" of ");
  const std::string rest = of == std::string::npos ? std::string() : text.substr(of + 4);
  return rest.substr(0, rest.find(' '));
}

bool is_less(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;  // numbers, or True and False
}

}  // namespace

RankValues rank_values(const model::JobModel& job, const model::CallSite& where, bool loop,
                       const model::RankSet& ranks) {
  const auto groups = model::values_at(job, where.file, where.line);
  std::map<std::string, model::RankSet> by_value;
  model::RankSet seen;
  for (const model::ValueGroup& one : groups) {
    const std::string value = loop ? total_of(one.value) : one.value;
    if (one.expression != groups.front().expression) {
      break;  // an operand
    }
    if (one.state != model::ValueState::kKnown || value.empty()) {
      return {};
    }
    by_value[value] = by_value[value].united(one.ranks);
    seen = seen.united(one.ranks);
  }
  if (by_value.empty() || by_value.size() > 2 || seen.common(ranks) != ranks) {
    return {};
  }
  RankValues out{.known = true};
  if (by_value.size() == 2) {
    const auto& one = *by_value.begin();
    const auto& other = *by_value.rbegin();
    const bool less = is_less(one.first, other.first);
    out.less = less ? one.second : other.second;
    out.more = less ? other.second : one.second;
  }
  return out;
}

std::optional<model::CallSite> test_between(const model::JobModel& job, const model::CallSite& line,
                                            const model::RankSet& these,
                                            const model::RankSet& those) {
  for (const program::Block& block :
       program::deciding_branches(lines_of(job, line.file), line.line)) {
    const model::CallSite where{.file = line.file, .line = block.line, .function = line.function};
    const RankValues values = rank_values(job, where, false, these.united(those));
    if (!is_loop(block) && values.differs() && (values.less == these || values.more == these)) {
      return where;
    }
  }
  return std::nullopt;
}

bool are_at_one_step(const model::JobModel& job) {
  std::map<std::pair<std::string, int>, std::string> known;
  for (const model::SeenValue& seen : model::observed_values(job)) {
    if (seen.role != model::ValueRole::kLoop || !seen.value.starts_with("iteration ")) {
      continue;
    }
    const auto [at, fresh] = known.try_emplace({seen.file, seen.line}, seen.value);
    if (!fresh && at->second != seen.value) {
      return false;
    }
  }
  return !known.empty();
}

}  // namespace ddpdoctor::detectors
