// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/side_values.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/ran_on.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_values.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {
namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;
using program::Block;
using program::Dependence;

constexpr std::size_t kMostShown = 3;

/// The common value of all ranks of a side; nothing if one of them has none or a different one.
std::optional<std::string> value_of(const std::vector<const SeenValue*>& seen,
                                    const model::RankSet& ranks) {
  std::optional<std::string> common;
  model::RankSet found;
  for (const SeenValue* one : seen) {
    if (!ranks.contains(*one->rank) || found.contains(*one->rank)) {
      continue;
    }
    if (one->state != ValueState::kKnown || (common && *common != one->value)) {
      return std::nullopt;
    }
    common = one->value;
    found.insert(*one->rank);
  }
  return found.size() == ranks.size() ? common : std::nullopt;
}

std::optional<long> number(std::string_view text) {
  long value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size() ? std::optional(value)
                                                                   : std::nullopt;
}

bool is_at(const SeenValue& seen, std::string_view file, int line) {
  return seen.line == line && seen.file == file;
}

/// Decisions at a line with a known result on some rank, all for the first expression there.
std::vector<const SeenValue*> decided_at(const std::vector<SeenValue>& all, std::string_view file,
                                         int line) {
  std::vector<const SeenValue*> out;
  for (const SeenValue& seen : all) {
    if (seen.role == ValueRole::kDecision && is_at(seen, file, line) &&
        (out.empty() || out.front()->expression == seen.expression)) {
      out.push_back(&seen);
    }
  }
  return out;
}

ValuesSay say(const std::vector<const SeenValue*>& seen, const Parting& parting) {
  const auto odd = value_of(seen, parting.odd.ranks);
  const auto rest = value_of(seen, parting.rest.ranks);
  if (!odd || !rest) {
    return ValuesSay::kNothing;
  }
  return *odd == *rest ? ValuesSay::kSame : ValuesSay::kDiffers;
}

/// On every rank, something that the decision reads equals the rank's number.
bool reads_the_rank(const std::vector<SeenValue>& all, std::string_view file, int line) {
  std::map<std::string, std::pair<bool, std::set<model::Rank>>> by_expression;
  for (const SeenValue& seen : all) {
    if (seen.role == ValueRole::kOperand && is_at(seen, file, line)) {
      auto& [is_rank, ranks] =
          by_expression.try_emplace(seen.expression, true, std::set<model::Rank>()).first->second;
      is_rank = is_rank && number(seen.value) == long{*seen.rank};
      ranks.insert(*seen.rank);
    }
  }
  return std::any_of(by_expression.begin(), by_expression.end(), [](const auto& entry) {
    return entry.second.first && entry.second.second.size() > 2;
  });
}

/// The last decision before a line whose value differs between the sides.
std::optional<Branch> branch_before(const model::JobModel& job, const std::vector<SeenValue>& all,
                                    const model::CallSite& site, const Parting& parting) {
  const auto& lines = lines_of(job, site.file);
  std::optional<Branch> found;
  for (const Block& block : program::deciding_branches(lines, site.line)) {
    const auto decided = decided_at(all, site.file, block.line);
    if (say(decided, parting) != ValuesSay::kDiffers || (found && found->where.line > block.line)) {
      continue;
    }
    const std::string& condition = decided.front()->expression;
    const bool rank =
        reads_the_rank(all, site.file, block.line) ||
        dependence_of(job, lines, {.line = block.line, .text = {}, .condition = condition}) ==
            Dependence::kRank;
    found = branch_of(block, site, rank ? Dependence::kRank : Dependence::kData, true);
    found->condition = condition;
  }
  return found;
}

/// Numbers that follow the rank (seeds, ports, pids) differ on purpose.
bool goes_with_the_rank(const std::string& odd, const std::string& rest, const Parting& parting) {
  const auto a = number(odd);
  const auto b = number(rest);
  if (!a || !b) {
    return false;
  }
  const bool one_each = parting.odd.ranks.size() == 1 && parting.rest.ranks.size() == 1;
  return one_each || *a - *b == long{parting.odd.ranks.front()} - parting.rest.ranks.front();
}

}  // namespace

ValuesSay values_say(const model::JobModel& job, const model::CallSite& decision,
                     const Parting& parting) {
  return say(decided_at(model::observed_values(job), decision.file, decision.line), parting);
}

bool refuted_by_values(const graph::Examination& examination, const Branch& branch,
                       const Parting& parting) {
  return !ran_on(examination, parting.odd) && !ran_on(examination, parting.rest) &&
         values_say(examination.job, branch.where, parting) == ValuesSay::kSame;
}

std::optional<Branch> branch_by_values(const model::JobModel& job, const Fork& fork,
                                       const Parting& parting) {
  const std::vector<SeenValue> all = model::observed_values(job);
  std::optional<Branch> found;
  const auto ask = [&](const model::CallSite& site, bool ours) {
    if (const auto branch = branch_before(job, all, site, parting); branch && !found) {
      found = branch;
      found->leads_to_ours = ours;
    }
  };
  // From the fork outward to the calls: the first difference separated them.
  if (!graph::same_line(fork.ours, fork.theirs)) {
    ask(fork.ours, true);
    ask(fork.theirs, false);
  }
  for (auto site = fork.below_ours.rbegin(); site != fork.below_ours.rend(); ++site) {
    ask(*site, true);
  }
  for (auto site = fork.below_theirs.rbegin(); site != fork.below_theirs.rend(); ++site) {
    ask(*site, false);
  }
  return found;
}

std::optional<std::int64_t> length_gone_over(const model::JobModel& job,
                                             const model::CallSite& header,
                                             const model::RankSet& ranks) {
  std::map<model::Rank, std::int64_t> lengths;
  for (const SeenValue& seen : model::observed_values(job)) {
    if (seen.role == ValueRole::kLoop && is_at(seen, header.file, header.line) && seen.items) {
      lengths.try_emplace(*seen.rank, *seen.items);
    }
  }
  std::optional<std::int64_t> common;
  for (const model::Rank rank : ranks) {
    const auto found = lengths.find(rank);
    if (found == lengths.end() || (common && *common != found->second)) {
      return std::nullopt;
    }
    common = found->second;
  }
  return common && *common > 0 ? common : std::nullopt;
}

std::vector<std::string> unlike_values(const model::JobModel& job, const Parting& parting) {
  using Key = std::tuple<std::string, std::string, std::string>;  // file, function, expression
  const std::vector<SeenValue> all = model::observed_values(job);
  std::map<Key, std::vector<const SeenValue*>> held;
  std::vector<Key> order;
  for (const SeenValue& seen : all) {
    if (seen.role == ValueRole::kHeld) {
      const Key key{seen.file, seen.function, seen.expression};
      auto& values = held[key];
      if (values.empty()) {
        order.push_back(key);
      }
      values.push_back(&seen);
    }
  }
  std::vector<std::string> out;
  for (const Key& key : order) {
    const auto odd = value_of(held[key], parting.odd.ranks);
    const auto rest = value_of(held[key], parting.rest.ranks);
    if (!odd || !rest || *odd == *rest || goes_with_the_rank(*odd, *rest, parting)) {
      continue;
    }
    out.push_back(fmt::format("`{}` is {} on {}, {} on {} ({})", std::get<2>(key), *odd,
                              said(parting.odd.ranks), *rest, said(parting.rest.ranks),
                              std::get<1>(key)));
    if (out.size() == kMostShown) {
      break;
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors
