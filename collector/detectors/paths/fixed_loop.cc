// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/fixed_loop.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/observed_values.h"
#include "collector/program/origin/items.h"
#include "collector/program/origin/yields.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/exits.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using Lines = program::SourceText;

/// Every rank goes through this loop equally often, if none leaves it early.
bool ends_alike(const model::JobModel& job, const Lines& lines, const Block& loop) {
  if (loop.kind == BlockKind::kFor) {
    return program::is_as_long_everywhere(lines, loop.line, job.sources);
  }
  const program::Origin origin = origin_of(job, lines, loop);  // `while left:` … `left -= 1`
  return loop.kind == BlockKind::kWhile && origin.source == program::Source::kUniform &&
         !origin.object;
}

/// The loop is over the user's generator, which yields only in such loops.
bool is_over_fixed_generator(const model::JobModel& job, const Lines& lines, const Block& loop) {
  const auto yields = program::yields_behind(lines, loop.line, job.sources);
  return !yields.empty() && std::all_of(yields.begin(), yields.end(), [&job](const auto& yield) {
    const Lines& there = *yield.text;
    const std::vector<Block> around = program::enclosing(there, yield.line);
    const auto deciding = program::deciding_branches(there, yield.line);
    return around.size() >= 2 && is_loop(around[0]) && ends_alike(job, there, around[0]) &&
           around[1].kind == BlockKind::kFunction && !yield.delegates &&
           program::loop_exits(there, yield.line).empty() &&
           std::all_of(deciding.begin(), deciding.end(), is_loop);
  });
}

}  // namespace

bool is_fixed(const model::JobModel& job, const Lines& lines, const Block& loop, int inside) {
  const bool as_long = loop.kind == BlockKind::kFor && ends_alike(job, lines, loop);
  if (!as_long && !is_over_fixed_generator(job, lines, loop)) {
    return false;
  }
  for (const Block& block : program::enclosing(lines, inside)) {
    if (block.line == loop.line) {
      break;
    }
    if (block.kind == BlockKind::kTry) {
      return false;
    }
  }
  const auto exits = program::loop_exits(lines, inside);
  return std::none_of(exits.begin(), exits.end(),
                      [&](const Block& exit) { return encloses(lines, loop, exit.line); });
}

bool was_read_as_long(const model::JobModel& job, const model::CallSite& header) {
  model::RankSet counted;
  std::set<std::int64_t> lengths;
  for (const model::SeenValue& seen : model::observed_values(job)) {
    if (seen.role == model::ValueRole::kLoop && seen.file == header.file &&
        seen.line == header.line && seen.rank && seen.items) {
      lengths.insert(*seen.items);
      counted.insert(*seen.rank);
    }
  }
  return counted.size() > 1 && lengths.size() == 1;
}

bool is_filtered(const Lines& lines, const Block& loop, int inside) {
  for (const Block& block : program::deciding_branches(lines, inside)) {
    if (!is_loop(block) && block.line != loop.line && encloses(lines, loop, block.line)) {
      return true;
    }
  }
  return false;
}

}  // namespace ddpdoctor::detectors
