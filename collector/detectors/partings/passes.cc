// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/passes.h"

#include <algorithm>
#include <numeric>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Calls;
using graph::Examination;
using model::CallSite;
using model::CollectiveCall;
using program::Block;
using Lines = program::SourceText;

/// `dist.all_gather(…)` on the innermost line and no comprehension on the path: each execution
/// makes one call.
bool calls_once(const model::JobModel& job, const CollectiveCall& call, const Path& path) {
  const auto text =
      path.empty() ? std::nullopt : model::source_line(job, path.front().file, path.front().line);
  return text && !call.operation.empty() &&
         text->find("." + call.operation + "(") != std::string_view::npos &&
         std::none_of(path.begin(), path.end(), [&job](const CallSite& site) {
           const auto line = model::source_line(job, site.file, site.line);
           return !line || line->find(" for ") != std::string_view::npos ||
                  line->find("map(") != std::string_view::npos;
         });
}

enum class Whole { kUnknown, kYes, kNo };

/// One execution of a line may make several calls: the buckets of a backward, the two gathers of
/// all_gather_object. Determines whether the calls directly before `sequence` are complete
/// executions, so that the next call from this line begins another one. Calls from other lines
/// separate complete executions.
Whole are_whole(const model::JobModel& job, const Calls& calls, const Path& path,
                std::int64_t sequence) {
  std::vector<Run> runs = runs_from(calls, path, sequence);
  const Run last = std::move(runs.back());
  runs.pop_back();
  if (!last.empty() && calls_once(job, *last.front(), path)) {
    return Whole::kYes;
  }
  std::size_t divisor = 0;
  std::size_t period = 0;
  for (const Run& run : runs) {
    if (begins_alike(run, last)) {  // differs: before DDP rebuilt its buckets
      divisor = std::gcd(divisor, run.size());
      period = std::max(period, period_of(run));
    }
  }
  if (last.empty() || divisor == 0) {
    return Whole::kUnknown;
  }
  if (last.size() % divisor == 0) {
    return Whole::kYes;
  }
  if (period == 1) {  // steps with one bucket, or buckets of equal size
    return Whole::kUnknown;
  }
  return last.size() % period == 0 ? Whole::kYes : Whole::kNo;
}

/// How a side got from the last common call to its next one: further down in the source, through a
/// loop that the other side is not in, or through a loop that both are in.
enum class Went { kUnknown, kOn, kRoundOwn, kRoundShared };

/// The data of the analysis, looked up once.
struct Question {
  const Examination& examination;
  const Parting& parting;
  const Fork& fork;
  Path last;              // of the last common call
  std::size_t depth = 0;  // index of the fork's function, from the outermost frame

  [[nodiscard]] const Lines& lines() const {
    return lines_of(examination.job, fork.ours.file);
  }
  [[nodiscard]] const CallSite& last_site() const {
    return last[last.size() - 1 - depth];
  }
};

const CallSite& at_depth(const Path& path, std::size_t depth) {
  return path[path.size() - 1 - depth];
}

bool in_one_function(const model::JobModel& job, const CallSite& a, const CallSite& b) {
  const Lines& lines = lines_of(job, a.file);
  return a.file == b.file &&
         program::function_extent(lines, a.line) == program::function_extent(lines, b.line);
}

bool is_in_a_loop(const model::JobModel& job, const CallSite& site) {
  return program::loop_around(lines_of(job, site.file), site.line).has_value();
}

std::optional<Question> question(const Examination& examination, const Parting& parting,
                                 const Fork& fork) {
  if (!parting.recorded || parting.shifted || !parting.sequence ||
      graph::same_line(fork.ours, fork.theirs)) {
    return std::nullopt;
  }
  const auto before = [&](const Side& side) {
    return examination.history.at(parting.group, side.ranks.front(), *parting.sequence - 1);
  };
  const CollectiveCall* odd = before(parting.odd);
  const CollectiveCall* rest = before(parting.rest);
  if (odd == nullptr || rest == nullptr) {
    return std::nullopt;
  }
  Question result{.examination = examination,
                  .parting = parting,
                  .fork = fork,
                  .last = graph::callers_of(*rest)};
  if (result.last.empty() || !same_path(result.last, graph::callers_of(*odd)) ||
      parting.rest.path.size() <= fork.below_theirs.size()) {
    return std::nullopt;
  }
  result.depth = parting.rest.path.size() - 1 - fork.below_theirs.size();
  for (std::size_t depth = 0; depth < result.depth; ++depth) {
    if (depth >= result.last.size() ||
        !graph::same_line(at_depth(result.last, depth), at_depth(parting.rest.path, depth))) {
      return std::nullopt;
    }
  }
  const bool reaches = result.last.size() > result.depth &&
                       in_one_function(examination.job, result.last_site(), fork.theirs);
  return reaches ? std::optional(std::move(result)) : std::nullopt;
}

/// The innermost loop that leads from the last call back to this line, and whether the other side
/// is in it. A function without such a loop was called again by a loop further out.
Went round_of(const Question& asked, int line, int other) {
  const Lines& lines = asked.lines();
  for (const Block& block : program::enclosing(lines, line)) {
    if (is_loop(block) && encloses(lines, block, asked.last_site().line)) {
      return encloses(lines, block, other) ? Went::kRoundShared : Went::kRoundOwn;
    }
  }
  for (std::size_t depth = 0; depth < asked.depth; ++depth) {
    if (is_in_a_loop(asked.examination.job, at_depth(asked.last, depth))) {
      return Went::kRoundShared;
    }
  }
  return Went::kUnknown;
}

/// Both calls came through one line of the fork's function: the frames below it decide.
Went went_below(const Question& asked, const Side& side, int other) {
  const model::JobModel& job = asked.examination.job;
  const int line = asked.last_site().line;
  bool looped = false;
  for (std::size_t depth = asked.depth + 1;; ++depth) {
    const bool last_ends = depth >= asked.last.size();
    const bool next_ends = depth >= side.path.size();
    if (last_ends && next_ends) {
      break;
    }
    if (last_ends || next_ends) {
      return Went::kUnknown;
    }
    const CallSite& from = at_depth(asked.last, depth);
    const CallSite& to = at_depth(side.path, depth);
    looped = looped || is_in_a_loop(job, to);
    if (!graph::same_line(from, to)) {
      if (!in_one_function(job, from, to)) {
        return Went::kUnknown;
      }
      const Went without_loop = to.line > from.line ? Went::kOn : round_of(asked, line, other);
      return looped ? Went::kRoundOwn : without_loop;
    }
  }
  if (looped) {
    return Went::kRoundOwn;
  }
  const Calls& calls = asked.examination.history.calls(asked.parting.group, side.ranks.front());
  switch (are_whole(job, calls, asked.last, *asked.parting.sequence)) {
    case Whole::kYes:
      return round_of(asked, line, other);
    case Whole::kNo:
      return Went::kOn;
    case Whole::kUnknown:
      break;
  }
  return Went::kUnknown;
}

Went went(const Question& asked, const Side& side, int other) {
  if (side.path.size() <= asked.depth) {
    return Went::kUnknown;
  }
  const int from = asked.last_site().line;
  const int to = at_depth(side.path, asked.depth).line;
  if (to == from) {
    return went_below(asked, side, other);
  }
  return to > from ? Went::kOn : round_of(asked, to, other);
}

/// The side is again at exactly the line of the last call, where a comprehension may make several
/// calls, and no rank reaches it in a new iteration without first making the call at `other`: it is
/// the same execution. Not if a loop of its own repeats that line.
bool goes_on_in_one_line(const Question& asked, const Side& side, int other) {
  const model::JobModel& job = asked.examination.job;
  if (!same_path(side.path, asked.last) ||
      round_of(asked, asked.last_site().line, other) != Went::kRoundShared) {
    return false;
  }
  const bool repeats =
      std::any_of(side.path.begin(), side.path.end() - static_cast<std::ptrdiff_t>(asked.depth),
                  [&job](const CallSite& site) {
                    const auto text = model::source_line(job, site.file, site.line);
                    return text && text->find(" for ") != std::string_view::npos;
                  });
  const std::vector<Block> before = program::deciding_branches(asked.lines(), other);
  return repeats && std::all_of(before.begin(), before.end(), [&](const Block& block) {
           return is_loop(block) || encloses(asked.lines(), block, asked.last_site().line);
         });
}

/// From the lines of recorded calls.
Passes recorded_passes(const Examination& examination, const Parting& parting, const Fork& fork) {
  const auto asked = question(examination, parting, fork);
  if (!asked) {
    return {};
  }
  Went odd = went(*asked, parting.odd, fork.theirs.line);
  Went rest = went(*asked, parting.rest, fork.ours.line);
  const auto settle = [&asked](Went& one, const Side& side, Went other, int others_line) {
    if (one == Went::kUnknown && other == Went::kRoundShared &&
        goes_on_in_one_line(*asked, side, others_line)) {
      one = Went::kOn;
    }
  };
  settle(odd, parting.odd, rest, fork.theirs.line);
  settle(rest, parting.rest, odd, fork.ours.line);
  if (odd == Went::kUnknown || rest == Went::kUnknown) {
    return {};
  }
  if ((odd == Went::kRoundShared) == (rest == Went::kRoundShared)) {
    return {.ahead = Ahead::kNeither};
  }
  return odd == Went::kRoundShared
             ? Passes{.ahead = Ahead::kOdd, .behind_repeats = rest == Went::kRoundOwn}
             : Passes{.ahead = Ahead::kRest, .behind_repeats = odd == Went::kRoundOwn};
}

}  // namespace

Passes passes_of(const Examination& examination, const Parting& parting, const Fork& fork) {
  const Passes recorded = recorded_passes(examination, parting, fork);
  const Turns turns = turns_of(examination.job, parting, fork);
  if (turns.ahead == Ahead::kUnknown || (turns.loose && recorded.ahead != Ahead::kUnknown)) {
    return recorded;
  }
  return {.ahead = turns.ahead,
          .behind_repeats = turns.ahead == recorded.ahead && recorded.behind_repeats};
}

Order order_of(const Examination& examination, const Parting& parting, const Fork& fork) {
  const Turns turns = turns_of(examination.job, parting, fork);
  const Ahead recorded =
      turns.loose ? recorded_passes(examination, parting, fork).ahead : Ahead::kUnknown;
  if (turns.ahead == Ahead::kUnknown || (recorded != Ahead::kUnknown && recorded != turns.ahead)) {
    return {};
  }
  if (turns.ahead != Ahead::kNeither) {
    return {.behind = turns.ahead == Ahead::kOdd ? Behind::kRest : Behind::kOdd,
            .loose = turns.loose};
  }
  const Lines& lines = lines_of(examination.job, fork.ours.file);
  if (graph::same_line(fork.ours, fork.theirs) ||
      program::statement_at(lines, fork.ours.line) ==
          program::statement_at(lines, fork.theirs.line)) {
    return {};
  }
  return {.behind = fork.ours.line < fork.theirs.line ? Behind::kOdd : Behind::kRest,
          .loose = turns.loose,
          .same_turn = true};
}

std::optional<bool> ours_behind(const Order& order) {
  return order.behind == Behind::kUnknown ? std::nullopt
                                          : std::optional(order.behind == Behind::kOdd);
}

bool waits_within_a_step(const Examination& examination, const Parting& parting) {
  const auto before = [&](const Side& side) {
    const CollectiveCall* call =
        parting.recorded && !parting.shifted && parting.sequence
            ? examination.history.at(parting.group, side.ranks.front(), *parting.sequence - 1)
            : nullptr;
    return call == nullptr ? Path{} : graph::callers_of(*call);
  };
  const Path last = before(parting.rest);
  return !last.empty() && same_path(last, parting.rest.path) &&
         same_path(last, before(parting.odd)) &&
         are_whole(examination.job,
                   examination.history.calls(parting.group, parting.rest.ranks.front()), last,
                   *parting.sequence) == Whole::kNo;
}

bool both_had_left(const Examination& examination, const Parting& parting, const Fork& fork,
                   const LeftLoop& loop) {
  const auto asked = question(examination, parting, fork);
  if (!asked) {
    return false;
  }
  const Went odd = went(*asked, parting.odd, fork.theirs.line);
  const Went rest = went(*asked, parting.rest, fork.ours.line);
  const Went out = loop.ours_left ? odd : rest;
  const Went in = loop.ours_left ? rest : odd;
  if (out == Went::kUnknown || out == Went::kRoundShared || in == Went::kUnknown ||
      in == Went::kOn) {
    return false;
  }
  const Lines& lines = lines_of(examination.job, loop.where.file);
  const auto in_loop = [&](const Path& path) {
    return std::any_of(path.begin(), path.end(), [&](const CallSite& site) {
      const std::vector<Block> around = site.file == loop.where.file
                                            ? program::enclosing(lines, site.line)
                                            : std::vector<Block>{};
      return std::any_of(around.begin(), around.end(),
                         [&](const Block& block) { return block.line == loop.where.line; });
    });
  };
  if (in_loop(asked->last)) {
    return false;
  }
  const Calls& calls = examination.history.calls(parting.group, parting.rest.ranks.front());
  const std::size_t first = calls.size() > kMostRead ? calls.size() - kMostRead : 0;
  return std::any_of(calls.begin() + static_cast<std::ptrdiff_t>(first), calls.end(),
                     [&](const CollectiveCall* call) {
                       return call->sequence < *parting.sequence &&
                              in_loop(graph::callers_of(*call));
                     });
}

}  // namespace ddpdoctor::detectors
