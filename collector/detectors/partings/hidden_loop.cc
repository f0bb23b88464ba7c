// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/hidden_loop.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "collector/detectors/call_sites/source_blocks.h"
#include "collector/python_source/expressions.h"

namespace ddpdoctor::detectors {
namespace {

// Calls from one place before it counts as repeated: more than the buckets of most backwards.
constexpr std::ptrdiff_t kRounds = 8;

/// "map(partial(step, model), loader)" of a statement; empty where it has none.
std::string map_in(const std::string& statement) {
  for (const python_source::Call& call : python_source::calls_in(statement)) {
    if (call.callee == "map") {
      return statement.substr(call.begin, call.end - call.begin);
    }
  }
  return {};
}

/// Nothing in the source repeats any of these lines.
bool has_no_loop(const model::JobModel& job, const Path& path) {
  return std::all_of(path.begin(), path.end(), [&job](const model::CallSite& site) {
    const python_source::Lines& lines = lines_of(job, site.file);
    return !lines.empty() && !python_source::loop_around(lines, site.line);
  });
}

/// Every rank of the side has called from here, again and again.
bool repeat(const graph::Examination& examination, const Parting& parting,
            const model::RankSet& ranks, const model::CallSite& from) {
  return std::all_of(ranks.begin(), ranks.end(), [&](model::Rank rank) {
    const graph::Calls& calls = examination.history.calls(parting.group, rank);
    return std::count_if(calls.begin(), calls.end(), [&from](const auto* call) {
             return graph::same_line(call->call_site, from);
           }) >= kRounds;
  });
}

/// `in`: the side that would still be in it.
std::optional<LeftLoop> left_by(const graph::Examination& examination, const Parting& parting,
                                const Fork& fork, bool ours_left) {
  const Side& in = ours_left ? parting.rest : parting.odd;
  const model::CallSite& inside = ours_left ? fork.theirs : fork.ours;
  const model::CallSite& behind = ours_left ? fork.ours : fork.theirs;
  const Path& below = ours_left ? fork.below_theirs : fork.below_ours;
  if (in.call == nullptr || below.empty() || behind.line <= inside.line ||
      behind.file != inside.file || !has_no_loop(examination.job, in.path)) {
    return std::nullopt;
  }
  Path within = below;
  within.push_back(inside);
  for (const model::CallSite& site : within) {
    const std::string map =
        map_in(python_source::statement_at(lines_of(examination.job, site.file), site.line));
    const bool repeated = !map.empty() &&
                          repeat(examination, parting, parting.odd.ranks, in.call->call_site) &&
                          repeat(examination, parting, parting.rest.ranks, in.call->call_site);
    if (repeated) {
      return LeftLoop{
          .where = site, .header = map, .ours_left = ours_left, .way_out = std::nullopt};
    }
  }
  return std::nullopt;
}

}  // namespace

bool read_hidden_loop(const graph::Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  auto loop = left_by(examination, parting, *explanation.fork, true);
  loop = loop ? loop : left_by(examination, parting, *explanation.fork, false);
  if (!loop) {
    return false;
  }
  explanation.loop = std::move(loop);
  if (!explanation.loop->ours_left) {
    explanation.turn();
  }
  explanation.cause = Cause::kUneven;
  return true;
}

}  // namespace ddpdoctor::detectors
