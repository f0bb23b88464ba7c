// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/hidden_loop.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/partings/recorded_rounds.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/origin/items.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

// Calls from one line before it counts as repeated: more than most backward passes have buckets.
constexpr std::ptrdiff_t kRounds = 8;

/// "map(partial(step, model), loader)" in a statement; empty if it contains none.
std::string map_in(const std::string& statement) {
  for (const program::Call& call : program::calls_in(statement)) {
    if (call.callee == "map") {
      return statement.substr(call.begin, call.end - call.begin);
    }
  }
  return {};
}

/// No loop in the source repeats any of these lines.
bool has_no_loop(const model::JobModel& job, const Path& path) {
  return std::all_of(path.begin(), path.end(), [&job](const model::CallSite& site) {
    const program::SourceText& lines = lines_of(job, site.file);
    return !lines.empty() && !program::loop_around(lines, site.line);
  });
}

/// Every rank of the side has called from here repeatedly.
bool repeat(const graph::Examination& examination, const Parting& parting,
            const model::RankSet& ranks, const model::CallSite& from) {
  return std::all_of(ranks.begin(), ranks.end(), [&](model::Rank rank) {
    const graph::Calls& calls = examination.history.calls(parting.group, rank);
    return std::count_if(calls.begin(), calls.end(), [&from](const auto* call) {
             return graph::same_line(call->call_site, from);
           }) >= kRounds;
  });
}

/// `in` is the side that would still be in it.
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
        map_in(program::statement_at(lines_of(examination.job, site.file), site.line));
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

/// Libraries that make one call per element of their argument.
bool goes_over_elements(const Side& side) {
  constexpr std::array<std::string_view, 4> kFunctions = {
      "recursively_apply", "apply_to_collection", "tree_map", "tree_map_"};
  return side.standing != nullptr && side.standing->thread != nullptr &&
         std::any_of(side.standing->thread->frames.begin(), side.standing->thread->frames.end(),
                     [&kFunctions](const model::Frame& frame) {
                       return std::find(kFunctions.begin(), kFunctions.end(), frame.function) !=
                              kFunctions.end();
                     });
}

/// The iterable of "for k, v in sorted(sums)".
program::Items items_in(const model::JobModel& job, const model::CallSite& site,
                        std::string_view header) {
  const std::size_t in = header.find(" in ");
  const auto& lines = lines_of(job, site.file);
  return in == header.npos || lines.empty()
             ? program::Items::kUnknown
             : program::items_of(header.substr(in + 4), {.text = &lines, .line = site.line},
                                 job.sources);
}

/// The same lines as far as both are known: a recorder may keep only the innermost.
bool agree(const Path& a, const Path& b) {
  return !a.empty() && !b.empty() &&
         std::equal(a.begin(),
                    a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
                    b.begin(), graph::same_line);
}

/// The last call that both sides made from the same lines was from exactly this one, and `in` has
/// called only from it since. Calls in between may be of one kind and matched by their order.
bool calls_once_more(const graph::Examination& examination, const Parting& parting,
                     const Side& in) {
  constexpr std::int64_t kMostMatched = 16;
  if (!parting.recorded || parting.shifted || !parting.sequence || in.call == nullptr ||
      in.path.empty() || in_backward(examination, in)) {
    return false;
  }
  for (std::int64_t by = 1; by <= kMostMatched; ++by) {
    const auto before = [&](const Side& side) {
      return examination.history.at(parting.group, side.ranks.front(), *parting.sequence - by);
    };
    const model::CollectiveCall* odd = before(parting.odd);
    const model::CollectiveCall* rest = before(parting.rest);
    const model::CollectiveCall* ins = before(in);
    if (odd == nullptr || rest == nullptr || !agree(graph::callers_of(*ins), in.path)) {
      return false;
    }
    if (same_path(graph::callers_of(*odd), graph::callers_of(*rest))) {
      return true;
    }
  }
  return false;
}

/// "all_gather_object" on a line that makes an all_gather; empty if the line does not name it.
std::string named_call(const graph::Examination& examination, const Side& in) {
  const std::string statement =
      program::statement_at(lines_of(examination.job, in.site().file), in.site().line);
  for (const program::Call& call : program::calls_in(statement)) {
    const std::string_view name = program::last_name(call.callee);
    if (name.find(in.operation) != std::string_view::npos) {
      return std::string(name);
    }
  }
  return {};
}

/// One execution of a line makes several calls: the ranks still in it make one more.
std::optional<LeftLoop> repeated_by(const graph::Examination& examination, const Parting& parting,
                                    bool ours_left) {
  const Side& in = ours_left ? parting.rest : parting.odd;
  if (!in.calls() || !calls_once_more(examination, parting, in)) {
    return std::nullopt;
  }
  const std::string innermost = named_call(examination, in);
  std::string_view callee = innermost;  // the function that the line calls: the frame below it
  for (const model::CallSite& site : in.path) {
    const std::string statement =
        program::statement_at(lines_of(examination.job, site.file), site.line);
    std::string header(program::comprehension_calling(statement, callee));
    callee = site.function;
    callee = callee.substr(callee.rfind('.') + 1);  // npos + 1 = 0
    if (header.empty() && goes_over_elements(in)) {
      header = statement;
    }
    if (!header.empty()) {
      LeftLoop loop{.where = site,
                    .header = std::move(header),
                    .ours_left = ours_left,
                    .way_out = std::nullopt};
      loop.over_keys = goes_over_elements(in) ||
                       items_in(examination.job, site, loop.header) != program::Items::kBatches;
      return loop;
    }
  }
  return std::nullopt;
}

/// Prefers the side that makes more of a few calls; of two equal ones, that with more calls.
bool read_repeated(const graph::Examination& examination, Explanation& explanation) {
  auto loop = repeated_by(examination, explanation.parting, true);
  loop = loop ? loop : repeated_by(examination, explanation.parting, false);
  if (!loop) {
    return false;
  }
  const Parting& parting = explanation.parting;
  if (loop->over_keys &&
      made_whole_passes(examination, parting, loop->ours_left ? parting.rest : parting.odd,
                        loop->ours_left ? parting.odd : parting.rest)) {
    return false;
  }
  explanation.loop = std::move(loop);
  const bool turns = explanation.loop->over_keys
                         ? explanation.loop->ours_left && explanation.parting.tie
                         : !explanation.loop->ours_left;
  if (turns) {
    explanation.turn();
  }
  explanation.cause = explanation.loop->over_keys ? Cause::kCount : Cause::kUneven;
  return true;
}

}  // namespace

bool read_hidden_loop(const graph::Examination& examination, Explanation& explanation) {
  if (read_repeated(examination, explanation)) {
    return true;
  }
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
