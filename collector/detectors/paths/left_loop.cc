// SPDX-License-Identifier: Apache-2.0
// The loop that some ranks have left while others are still in it, and the condition that left it.
#include <algorithm>
#include <string>
#include <vector>

#include "base/text.h"
#include "collector/detectors/paths/comprehensions.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/fixed_loop.h"
#include "collector/detectors/paths/loop_decision.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/detectors/paths/ways_out.h"
#include "collector/graph/history.h"
#include "collector/model/questions.h"
#include "collector/program/origin/items.h"
#include "collector/program/origin/yields.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/data_ends.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/exits.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using program::DataEnd;
using program::Dependence;
using Lines = program::SourceText;

// "while True: chunk = next(stream)": the data of a loop whose header does not name it.
std::string header_of(const Lines& lines, const Block& loop, const std::optional<DataEnd>& end) {
  constexpr std::size_t kLongest = 60;
  return !end || end->taken == loop.line
             ? loop.text
             : loop.text + ": " + base::elide(program::statement_at(lines, end->taken), kLongest);
}

LeftLoop loop_of(const model::JobModel& job, const Lines& lines, const Block& loop,
                 const model::CallSite& in, bool ours_left) {
  const std::optional<DataEnd> end = program::data_end_of(lines, loop.line);
  LeftLoop left{.where = {.file = in.file, .line = loop.line, .function = in.function},
                .header = header_of(lines, loop, end),
                .ours_left = ours_left,
                .way_out = loop_decision(job, lines, loop, in, end)};
  const program::Items items = items_of(job, lines, loop.line);
  left.over_keys = items == program::Items::kElements ||
                   (items == program::Items::kUnknown &&
                    program::reduces_each(lines, loop.line, in.line, job.sources));
  left.over_batches = !left.over_keys && (items == program::Items::kBatches || end);
  left.fixed = !left.way_out && !end && is_fixed(job, lines, loop, in.line) &&
               !(left.over_keys && is_filtered(lines, loop, in.line));
  return left;
}

// The innermost loop around a line that repeats it; a loop that only retries after an exception
// does not count.
std::optional<Block> repeating_loop(const Lines& lines, int line) {
  for (const Block& block : program::enclosing(lines, line)) {
    if (is_loop(block) && program::comes_round(lines, block.line, line)) {
      return block;
    }
  }
  return std::nullopt;
}

// A loop around `in` that `out` is not in: `out` is after it, or both are in a further loop.
std::optional<Block> loop_without(const Lines& lines, int in, int out) {
  std::optional<Block> found;
  bool shared_outer = false;
  for (const Block& block : program::enclosing(lines, in)) {
    if (!is_loop(block)) {
      continue;
    }
    if (encloses(lines, block, out) && out != block.line) {
      shared_outer = true;
      break;
    }
    if (!found && program::comes_round(lines, block.line, in)) {
      found = block;
    }
  }
  const bool behind = found && (out > in || shared_outer);
  return behind ? found : std::nullopt;
}

// A comprehension or lambda: the statements around its line belong to the function around it.
bool has_no_statements(const model::CallSite& site) {
  const std::string_view name = program::last_name(site.function);
  return name.starts_with('<') && name != "<module>";
}

// All loops on the path were left: the innermost one, or the one around it that a condition on data
// leaves, or if the inner one has the same length on every rank.
std::optional<LeftLoop> loop_below(const model::JobModel& job, const Path& below, bool ours_left) {
  std::optional<LeftLoop> found;
  for (const model::CallSite& site : below) {
    if (has_no_statements(site)) {
      continue;
    }
    const Lines& lines = lines_of(job, site.file);
    if (const auto block = repeating_loop(lines, site.line)) {
      LeftLoop loop = loop_of(job, lines, *block, site, ours_left);
      if (!found || (!found->way_out && (loop.way_out || found->fixed))) {
        found = std::move(loop);
      }
    }
  }
  return found;
}

// What may have a different number of iterations inside a loop with a fixed number: a loop over
// batches below it, or one over names or over filtered items.
std::optional<LeftLoop> differing_inside(const model::JobModel& job, const Path& below,
                                         bool ours_left) {
  std::optional<LeftLoop> over_keys;
  for (const model::CallSite& site : below) {
    const Lines& lines = lines_of(job, site.file);
    for (const Block& block :
         has_no_statements(site) ? std::vector<Block>() : program::enclosing(lines, site.line)) {
      if (!is_loop(block) || !program::comes_round(lines, block.line, site.line)) {
        continue;
      }
      LeftLoop loop = loop_of(job, lines, block, site, ours_left);
      if (loop.over_keys && !over_keys && !loop.fixed) {
        over_keys = std::move(loop);
      } else if (!loop.fixed && is_over_batches(loop)) {
        loop.in_step = !loop.over_batches;
        return loop;
      }
    }
  }
  return over_keys;
}

LeftLoop loop_of(const model::JobModel& job, const Comprehension& made, bool ours_left) {
  const program::Asked asked{.text = &lines_of(job, made.where.file), .line = made.where.line};
  const program::Items items = program::items_of(made.iterable, asked, job.sources);
  LeftLoop left{.where = made.where,
                .header = made.header,
                .ours_left = ours_left,
                .way_out = end_of_generator(
                    job, program::yields_behind(made.iterable, asked, job.sources), made.where)};
  left.over_batches = items == program::Items::kBatches;
  left.over_keys = items == program::Items::kElements;
  return left;
}

/// Both are in one round, or in two, of a loop around both.
bool share_a_loop(const Lines& lines, int line, int other) {
  const std::vector<Block> around = program::enclosing(lines, line);
  return std::any_of(around.begin(), around.end(), [&](const Block& block) {
    return is_loop(block) && encloses(lines, block, other);
  });
}

// "losses = [step(x) for x in loader]": a rank after the statement, or in the next round of a loop
// around it, has left it.
std::optional<LeftLoop> comprehension_left(const model::JobModel& job, const Fork& fork,
                                           bool ours_left) {
  const model::CallSite& in = ours_left ? fork.theirs : fork.ours;
  const model::CallSite& out = ours_left ? fork.ours : fork.theirs;
  const Path& below = ours_left ? fork.below_theirs : fork.below_ours;
  if (out.line == in.line ||
      (out.line < in.line && !share_a_loop(lines_of(job, in.file), in.line, out.line))) {
    return std::nullopt;
  }
  if (const auto made = comprehension_at(job, in, below, below.size())) {
    return loop_of(job, *made, ours_left);
  }
  for (std::size_t i = below.size(); i > 0; --i) {  // in a function that a rank at `out` left
    if (const auto made = comprehension_at(job, below[i - 1], below, i - 1)) {
      LeftLoop left = loop_of(job, *made, ours_left);
      left.over_keys = !left.over_batches;
      return left;
    }
  }
  return std::nullopt;
}

// "trainer.fit().save()": one line makes both calls, the second after the first has returned.
bool are_chained(const model::JobModel& job, const Fork& fork) {
  const auto text = model::source_line(job, fork.ours.file, fork.ours.line);
  const auto calls = [&text](const Path& below) {
    if (!text || below.empty()) {
      return false;
    }
    const std::string& function = below.back().function;
    const std::size_t dot = function.rfind('.');
    return text->find((dot == std::string::npos ? function : function.substr(dot + 1)) + "(") !=
           std::string_view::npos;
  };
  return calls(fork.below_ours) && calls(fork.below_theirs);
}

}  // namespace

bool is_over_batches(const std::optional<LeftLoop>& loop) {
  return loop && !loop->over_keys && !loop->fixed;
}

std::optional<LeftLoop> left_loop(const model::JobModel& job, const Fork& fork) {
  if (graph::same_line(fork.ours, fork.theirs)) {
    const bool chained = are_chained(job, fork);
    const auto theirs = chained ? loop_below(job, fork.below_theirs, true) : std::nullopt;
    const auto ours = chained ? loop_below(job, fork.below_ours, false) : std::nullopt;
    return theirs && ours ? std::nullopt : (theirs ? theirs : ours);
  }
  const Lines& lines = lines_of(job, fork.ours.file);
  for (const bool ours_left : {true, false}) {
    const model::CallSite& in = ours_left ? fork.theirs : fork.ours;
    const model::CallSite& out = ours_left ? fork.ours : fork.theirs;
    const auto block = loop_without(lines, in.line, out.line);
    if (!block) {
      continue;
    }
    LeftLoop loop = loop_of(job, lines, *block, in, ours_left);
    const Path& below = ours_left ? fork.below_theirs : fork.below_ours;
    const bool as_long = !loop.fixed && !loop.way_out && was_read_as_long(job, loop.where);
    auto inside = loop.fixed || as_long ? differing_inside(job, below, ours_left) : std::nullopt;
    if (as_long && inside && !inside->way_out) {
      inside.reset();  // a loader may end before its length
    }
    return inside ? std::move(inside) : std::optional(std::move(loop));
  }
  // Both may be in loops of their own functions: the side further down has left the other's loop.
  const auto around_theirs = loop_below(job, fork.below_theirs, true);
  const auto around_ours = loop_below(job, fork.below_ours, false);
  if (around_theirs && around_ours) {
    return fork.ours.line > fork.theirs.line ? around_theirs : around_ours;
  }
  if (around_theirs || around_ours) {
    // The side without a loop below may be in a comprehension that the other has left.
    auto made = comprehension_left(job, fork, around_ours.has_value());
    return made ? std::move(made) : (around_theirs ? around_theirs : around_ours);
  }
  auto made = comprehension_left(job, fork, true);
  return made ? made : comprehension_left(job, fork, false);
}

std::optional<LeftLoop> loop_left_with(const model::JobModel& job, const Fork& fork,
                                       const LeftLoop& inner, BegunAnew begun) {
  const Path& below = inner.ours_left ? fork.below_theirs : fork.below_ours;
  const auto called = std::find_if(below.begin(), below.end(), [&inner](const auto& site) {
    return site.file == inner.where.file && site.function == inner.where.function;
  });
  const model::CallSite& at_fork = inner.ours_left ? fork.theirs : fork.ours;
  const model::CallSite& in = called == below.end() ? at_fork : *called;
  const model::CallSite& out = inner.ours_left ? fork.ours : fork.theirs;
  const Lines& lines = lines_of(job, in.file);
  if (in.file != inner.where.file) {
    return std::nullopt;
  }
  for (const Block& block : program::enclosing(lines, inner.where.line)) {
    if (!is_loop(block) || block.line == inner.where.line) {
      continue;
    }
    if (out.file == in.file && encloses(lines, block, out.line)) {
      break;
    }
    const auto exit = way_out_of(job, lines, block, in, program::data_end_of(lines, block.line));
    const bool by_data =
        exit && exit->on == Dependence::kData &&
        (begun == BegunAnew::kProbably || is_flag(exit->condition) ||
         reads_own(job, lines,
                   {.line = exit->where.line, .text = {}, .condition = exit->condition}));
    if (begun == BegunAnew::kCertainly || by_data) {
      return LeftLoop{.where = {.file = in.file, .line = block.line, .function = in.function},
                      .header = block.text,
                      .ours_left = inner.ours_left,
                      .way_out = exit};
    }
  }
  return std::nullopt;
}

std::optional<LeftLoop> loop_of_calls(const model::JobModel& job, const Fork& fork, bool of_ours) {
  const model::CallSite& in = of_ours ? fork.ours : fork.theirs;
  const model::CallSite& out = of_ours ? fork.theirs : fork.ours;
  if (auto below = loop_below(job, of_ours ? fork.below_ours : fork.below_theirs, !of_ours)) {
    return below;
  }
  const Lines& lines = lines_of(job, in.file);
  const auto block = repeating_loop(lines, in.line);
  return block && !encloses(lines, *block, out.line)
             ? std::optional(loop_of(job, lines, *block, in, !of_ours))
             : std::nullopt;
}

bool stands_in_left_loop(const model::JobModel& job, const Fork& fork, const Branch& branch) {
  const auto loop = left_loop(job, fork);
  if (!loop || loop->way_out || loop->ours_left == branch.leads_to_ours ||
      loop->where.file != branch.where.file || loop->where.line >= branch.where.line) {
    return false;
  }
  const Lines& lines = lines_of(job, branch.where.file);
  const std::vector<Block> around = program::enclosing(lines, branch.where.line);
  return std::any_of(around.begin(), around.end(),
                     [&loop](const Block& block) { return block.line == loop->where.line; });
}

}  // namespace ddpdoctor::detectors
