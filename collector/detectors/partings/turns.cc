// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/turns.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/partings/wrapping_frames.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/history.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/exits.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using model::Iteration;
using program::Block;
using program::BlockKind;
using Lines = program::SourceText;

/// Outermost first.
using Frames = std::vector<const Frame*>;

/// A record may contain only the innermost frames.
bool begins_with(const Path& path, const Path& recorded) {
  return recorded.size() <= path.size() &&
         std::equal(recorded.begin(), recorded.end(), path.begin(), graph::same_line);
}

/// The user's frames down to this depth, if no library function with a possible loop is among them
/// and the side is at its call.
Frames frames_of(const Side& side, std::size_t depth) {
  const model::Thread* thread = side.standing == nullptr ? nullptr : side.standing->thread;
  const bool there =
      thread != nullptr && same_path(side.path, side.standing->callers) &&
      (side.call == nullptr || begins_with(side.path, graph::callers_of(*side.call)));
  Frames users = there ? model::user_frames(*thread) : Frames{};
  if (users.size() != side.path.size() || users.size() <= depth) {
    return {};
  }
  std::reverse(users.begin(), users.end());
  users.resize(depth + 1);
  bool above = true;
  for (const Frame& frame : thread->frames) {  // innermost first
    above = above && &frame != users.back();
    const bool own = std::find(users.begin(), users.end(), &frame) != users.end();
    if (!above && !own && frame.language == model::Language::kPython && !only_wraps(frame)) {
      return {};
    }
  }
  return users;
}

/// The function is known completely from its start to this line.
bool is_whole(const Lines& lines, int line) {
  const auto extent = program::function_extent(lines, line);
  const int first = extent ? extent->first : (lines.empty() ? line : lines.begin()->first);
  const auto begin = lines.lower_bound(first);
  return lines.contains(line) && std::distance(begin, lines.find(line)) == line - first;
}

/// A rank at a loop's own line fetches or tests, at either end of an iteration; a rank at a `with`
/// enters or leaves it.
bool says_no_moment(const Lines& lines, int line) {
  const std::string statement = program::statement_at(lines, line);
  constexpr std::array<std::string_view, 6> kHeaders = {"for ",      "while ",     "with ",
                                                        "async for", "async with", "lambda "};
  return statement.empty() ||
         std::any_of(kHeaders.begin(), kHeaders.end(), [&statement](std::string_view header) {
           return statement.starts_with(header);
         });
}

/// The loops around a line, outermost first.
std::vector<Block> loops_around_turn(const Lines& lines, int line) {
  std::vector<Block> out = program::enclosing(lines, line);
  std::erase_if(out, [](const Block& block) { return !is_loop(block); });
  std::reverse(out.begin(), out.end());
  return out;
}

/// How many iterations further the first is; nullopt if nothing counts them.
std::optional<std::int64_t> turns_between(const Iteration& odd, const Iteration& rest) {
  if (odd.index && rest.index) {
    return *odd.index - *rest.index;
  }
  if (odd.done && rest.done) {
    return *odd.done - *rest.done;
  }
  const bool of_range = odd.over == "range" && rest.over == "range" && odd.left && rest.left;
  return of_range ? std::optional(*rest.left - *odd.left) : std::nullopt;
}

bool is_loose(const Iteration& odd, const Iteration& rest) {
  return !(odd.index && rest.index) && (odd.loose || rest.loose || !odd.done || !rest.done);
}

}  // namespace

Turns turns_of(const model::JobModel& job, const Parting& parting, const Fork& fork) {
  if (parting.shifted || parting.rest.path.size() <= fork.below_theirs.size()) {
    return {};
  }
  const std::size_t depth = parting.rest.path.size() - 1 - fork.below_theirs.size();
  const Frames odd = frames_of(parting.odd, depth);
  const Frames rest = frames_of(parting.rest, depth);
  if (odd.empty() || rest.empty()) {
    return {};
  }
  Turns out{.ahead = Ahead::kNeither};
  for (std::size_t i = 0; i <= depth; ++i) {
    const Lines& lines = lines_of(job, odd[i]->file);
    if (odd[i]->file != rest[i]->file || !is_whole(lines, odd[i]->line) ||
        !is_whole(lines, rest[i]->line) || says_no_moment(lines, odd[i]->line) ||
        says_no_moment(lines, rest[i]->line)) {
      return {};
    }
    const std::vector<Block> loops = loops_around_turn(lines, odd[i]->line);
    for (std::size_t k = 0; k < loops.size() && encloses(lines, loops[k], rest[i]->line); ++k) {
      const bool counted =
          loops[k].kind == BlockKind::kFor && k < odd[i]->loops.size() && k < rest[i]->loops.size();
      const auto further =
          counted ? turns_between(odd[i]->loops[k], rest[i]->loops[k]) : std::nullopt;
      if (!further) {
        return {};
      }
      out.loose = out.loose || is_loose(odd[i]->loops[k], rest[i]->loops[k]);
      if (*further != 0) {
        out.ahead = *further > 0 ? Ahead::kOdd : Ahead::kRest;
        return out;
      }
    }
  }
  return out;
}

bool would_have_left(const model::JobModel& job, const Parting& parting, const Fork& fork,
                     const Branch& branch) {
  if (branch.where.file != fork.ours.file || parting.rest.path.size() <= fork.below_theirs.size()) {
    return false;
  }
  const Lines& lines = lines_of(job, fork.ours.file);
  const auto stands_in = [&](int line) {
    const std::vector<Block> exits = program::loop_exits(lines, line);
    return branch.where.line != line &&
           std::any_of(exits.begin(), exits.end(),
                       [&branch](const Block& exit) { return exit.line == branch.where.line; });
  };
  const std::size_t depth = parting.rest.path.size() - 1 - fork.below_theirs.size();
  const Frames frames = frames_of(parting.rest, depth);
  if (frames.empty() || !stands_in(fork.ours.line) || !stands_in(fork.theirs.line) ||
      loops_around_turn(lines, branch.where.line).size() != 1) {
    return false;
  }
  return std::all_of(frames.begin(), frames.end() - 1, [&job](const Frame* frame) {
    const Lines& source = lines_of(job, frame->file);
    return is_whole(source, frame->line) && loops_around_turn(source, frame->line).empty();
  });
}

}  // namespace ddpdoctor::detectors
