// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/loop_bound.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_values.h"
#include "collector/model/questions.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

/// The value of the odd ranks and that of the rest, from any function that has this name on all
/// ranks of both sides.
std::optional<std::pair<std::string, std::string>> values_of(const model::JobModel& job,
                                                             std::string_view name,
                                                             const Parting& parting) {
  std::map<std::pair<std::string, std::string>, std::map<model::Rank, std::string>> held;
  for (const model::SeenValue& seen : model::observed_values(job)) {
    if (seen.expression == name && seen.rank && seen.state == model::ValueState::kKnown) {
      held[{seen.file, seen.function}].try_emplace(*seen.rank, seen.value);
    }
  }
  const auto common = [](const std::map<model::Rank, std::string>& values,
                         const model::RankSet& ranks) -> std::optional<std::string> {
    std::optional<std::string> one;
    for (const model::Rank rank : ranks) {
      const auto value = values.find(rank);
      if (value == values.end() || (one && *one != value->second)) {
        return std::nullopt;
      }
      one = value->second;
    }
    return one;
  };
  for (const auto& [function, values] : held) {
    const auto odd = common(values, parting.odd.ranks);
    const auto rest = common(values, parting.rest.ranks);
    if (odd && rest) {
      return std::pair(*odd, *rest);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<LoopBound> unlike_bound(const model::JobModel& job, const model::CallSite& header,
                                      const Parting& parting) {
  const auto& lines = lines_of(job, header.file);
  const auto text = lines.find(header.line);
  if (text == lines.end()) {
    return std::nullopt;
  }
  for (const program::Call& call : program::calls_in(text->second)) {
    if (call.callee != "range") {
      continue;
    }
    for (const std::string_view argument : call.arguments) {
      const auto values = values_of(job, argument, parting);
      const auto origin =
          program::origin_of(argument, {.text = &lines, .line = header.line}, job.sources);
      const bool differs = values && values->first != values->second;
      if ((values && !differs) || (!differs && !is_each_ranks_own(origin.source)) ||
          origin.source == program::Source::kRank || origin.source == program::Source::kLength) {
        continue;
      }
      LoopBound bound{.name = std::string(argument)};
      if (differs) {
        bound.values = fmt::format("{} on {}, {} on {}", values->first, said(parting.odd.ranks),
                                   values->second, said(parting.rest.ranks));
      }
      bound.of = decider(origin.source);
      if (origin.chain.size() > 1) {
        const program::OriginStep& last = origin.chain.back();
        bound.from = {
            .file = last.file.empty() ? header.file : last.file, .line = last.line, .function = {}};
      }
      return bound;
    }
  }
  return std::nullopt;
}

void tell_bound(const LoopBound& bound, Finding& finding) {
  const std::string own =
      bound.of.empty() ? std::string() : fmt::format(" from each rank's {}", bound.of);
  const std::string at =
      bound.from.known() ? fmt::format(" ({})", line_of(bound.from)) : std::string();
  finding.fix = fmt::format(
      "Start and end this loop at the same step on every rank: `{}` comes{}{}. Take it from rank "
      "0 (broadcast_object_list), or the minimum by all_reduce.",
      bound.name, own.empty() ? " from a line that gives ranks different values" : own, at);
  if (bound.from.known()) {
    finding.locations.push_back(
        location(bound.from, {}, fmt::format("`{}` comes from here", bound.name)));
  }
  if (!bound.values.empty()) {
    finding.evidence.push_back(
        {.rank = std::nullopt, .text = fmt::format("`{}` is {}", bound.name, bound.values)});
  }
}

}  // namespace ddpdoctor::detectors
