// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/deciding.h"

#include <utility>

#include "collector/program/questions/blocks.h"
#include "collector/program/questions/branches.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::program {
namespace {

Dependence dependence_of(const SourceText& text, const Branching& branching) {
  return dependence(branching.block.condition, text, branching.block.line);
}

/// Rank of a branch as an explanation; higher is better.
int worth_of(const Branching& branching, Dependence on) {
  if (on == Dependence::kRank) {
    return 4;
  }
  if (on == Dependence::kData) {
    return branching.loop ? 2 : 3;
  }
  return branching.loop ? 0 : 1;
}

/// Without a loop around both, the ranks at the later line have passed the earlier condition; those
/// at the earlier line have not reached the later one.
bool only_passed(const SourceText& text, const Block& one, const Block& other) {
  return one.line < other.line && !loop_around(text, one.line);
}

}  // namespace

std::vector<Block> deciding_branches(const SourceText& text, int line) {
  std::vector<Block> out;
  for (Branching& one : branches_to(text, line)) {
    if (!one.by_rank_only || dependence_of(text, one) == Dependence::kRank) {
      out.push_back(std::move(one.block));
    }
  }
  return out;
}

std::optional<Block> separating_branch(const SourceText& text, int line_a, int line_b,
                                       std::optional<int> behind) {
  std::optional<Block> best;
  int highest = 0;
  for (Branching& one : branches_between(text, line_a, line_b, behind)) {
    if (one.forks) {
      return std::move(one.block);
    }
    const Dependence on = dependence_of(text, one);
    const int worth = worth_of(one, on);
    const bool while_true = worth == 0 && one.block.kind == BlockKind::kWhile;
    if ((one.by_rank_only && on != Dependence::kRank) || while_true) {
      continue;
    }
    const bool as_good = best && worth == highest;
    if (!best || worth > highest || (as_good && one.block.indent > best->indent) ||
        (as_good && one.block.indent == best->indent && only_passed(text, one.block, *best))) {
      best = std::move(one.block);
      highest = worth;
    }
  }
  return best;
}

}  // namespace ddpdoctor::program
