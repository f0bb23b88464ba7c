// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/source_path.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/paths/registration.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/unlike_environment.h"
#include "collector/detectors/paths/ways_out.h"
#include "collector/graph/history.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/data_ends.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/reaching.h"
#include "collector/program/questions/uses.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using program::Dependence;
using Lines = program::SourceText;

bool is_arm(const Block& block) {
  return block.kind == BlockKind::kIf || block.kind == BlockKind::kElif ||
         block.kind == BlockKind::kElse;
}

// An early exit ("if rank != 0: return") leads to the code after it; any other block to the code
// inside it.
bool leads_to_first(const Lines& lines, const Block& block, int first, int second) {
  if (block.within) {
    return program::statement_at(lines, first) == program::statement_at(lines, block.line);
  }
  const bool holds_first = encloses(lines, block, first);
  const bool holds_second = encloses(lines, block, second);
  if (holds_first != holds_second) {
    return holds_first;
  }
  return first > second;
}

// Tests such as "rank != -1" are true on every rank and separate none.
bool can_separate(const Block& block, const model::RankSet& ours, const model::RankSet& theirs) {
  if (ours.empty() || theirs.empty()) {
    return true;
  }
  std::optional<bool> first;
  for (const model::RankSet* side : {&ours, &theirs}) {
    for (const model::Rank rank : *side) {
      const std::optional<bool> holds = holds_for(block.condition, rank);
      if (!holds) {
        return true;
      }
      if (!first) {
        first = holds;
      } else if (*first != *holds) {
        return true;
      }
    }
  }
  return false;
}

/// Environment variables are equal on all ranks, except those known to differ.
bool tests_environment(const model::JobModel& job, const Lines& lines, const Block& block,
                       Dependence wanted) {
  return wanted == Dependence::kData &&
         !unlike_variable(job, lines, block.condition, block.line).empty();
}

// The compared value is unknown, and the ranks are on both sides of the comparison as if it were
// the rank's number: `x == 0` with only rank 0 on one side.
bool splits_by_number(const Block& block, const program::Origin& origin, const model::RankSet& ours,
                      const model::RankSet& theirs) {
  const auto all = [&block](const model::RankSet& ranks, bool wanted) {
    return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [&](model::Rank rank) {
      return holds_for(block.condition, rank) == wanted;
    });
  };
  const bool compared = !origin.unknown.empty() && block.condition.starts_with(origin.unknown);
  return origin.source == program::Source::kUnknown && compared &&
         ((all(ours, true) && all(theirs, false)) || (all(ours, false) && all(theirs, true)));
}

/// A condition of the wanted kind that can have separated the ranks.
bool leads(const model::JobModel& job, const Lines& lines, const Block& block,
           const program::Origin& origin, Dependence wanted, const model::RankSet& ours,
           const model::RankSet& theirs) {
  if (wanted != Dependence::kRank) {
    return dependence_of(origin) == wanted || tests_environment(job, lines, block, wanted);
  }
  // A comparison with a number computed from the rank cannot be evaluated here.
  const bool by_rank = dependence_of(origin) == Dependence::kRank &&
                       (!origin.number_compared || can_separate(block, ours, theirs));
  return by_rank || splits_by_number(block, origin, ours, theirs);
}

Branch told_of(Branch branch, const program::Origin& origin) {
  branch.unproven = is_unproven(origin);
  return branch;
}

/// What a test is about: `first` of `first` and of `not first`; empty for several operands.
std::string flag_of(const Block& test) {
  const auto operands = program::operands_of(test.condition);
  return operands.size() == 1 ? operands.front() : std::string();
}

/// What the flag of a test is at a line to which the test leads.
std::optional<bool> flag_at(const Lines& lines, const Block& test, int line) {
  const auto result = program::result_leading_to(lines, test.line, test.condition, line);
  return result && program::is_negated(test.condition, flag_of(test)) ? !*result : result;
}

/// "if not first: barrier()" and, further down, "if first: barrier()": the test decides when a rank
/// makes the call, not whether.
bool is_called_either_way(const Lines& lines, const Block& test, int line) {
  const std::string flag = flag_of(test);
  const std::string statement = program::statement_at(lines, line);
  const auto function = program::function_extent(lines, line);
  const auto here = function && !flag.empty() ? flag_at(lines, test, line) : std::nullopt;
  for (int other = function ? function->first : 0; here && other <= function->second; ++other) {
    if (other == line || program::statement_at(lines, other) != statement) {
      continue;
    }
    const std::vector<Block> around = program::deciding_branches(lines, other);
    if (std::any_of(around.begin(), around.end(), [&](const Block& block) {
          return !is_loop(block) && flag_of(block) == flag &&
                 flag_at(lines, block, other) == !*here;
        })) {
      return true;
    }
  }
  return false;
}

/// The condition around one frame below the fork; `callers` are the outer frames.
std::optional<Branch> branch_around(const model::JobModel& job, const Path& callers,
                                    const model::CallSite& site, bool ours, Dependence wanted,
                                    const model::RankSet& our_ranks,
                                    const model::RankSet& their_ranks) {
  const Lines& lines = lines_of(job, site.file);
  for (const Block& block : program::deciding_branches(lines, site.line)) {
    if (is_loop(block)) {
      continue;
    }
    const program::Origin origin = origin_of(job, lines, block, callers);
    if (leads(job, lines, block, origin, wanted, our_ranks, their_ranks) &&
        !is_called_either_way(lines, block, site.line)) {
      return told_of(branch_of(block, site, wanted, ours), origin);
    }
  }
  return std::nullopt;
}

Branch branch_of_decorator(const program::DecoratorAt& let_in, const model::CallSite& site,
                           bool ours) {
  const std::string decorator = let_in.decorator.one_line();
  Branch branch = branch_of({.kind = BlockKind::kFunction,
                             .line = let_in.line,
                             .text = "@" + decorator,
                             .condition = decorator},
                            site, Dependence::kRank, ours);
  branch.unproven = let_in.by_name;
  return branch;
}

Branch branch_of_cache(const program::DecoratorAt& cache, const model::CallSite& site, bool ours) {
  Branch branch = branch_of_decorator(cache, site, ours);
  branch.on = Dependence::kData;
  branch.condition = "@" + branch.condition;
  branch.caches = true;
  return branch;
}

// Conditions around the frames below the fork, innermost first.
std::optional<Branch> branch_below(const model::JobModel& job, const Fork& fork, bool ours,
                                   Dependence wanted, const model::RankSet& our_ranks,
                                   const model::RankSet& their_ranks) {
  const Path& below = ours ? fork.below_ours : fork.below_theirs;
  Path callers = below;
  callers.push_back(ours ? fork.ours : fork.theirs);
  for (std::size_t i = 0; i < below.size(); ++i) {
    callers.erase(callers.begin());
    if (auto found = branch_around(job, callers, below[i], ours, wanted, our_ranks, their_ranks)) {
      return found;
    }
    if (const auto cache =
            wanted == Dependence::kData
                ? program::cache_around(lines_of(job, below[i].file), below[i].line, job.sources)
                : std::nullopt) {
      return branch_of_cache(*cache, below[i], ours);
    }
    const auto decorator =
        wanted == Dependence::kRank
            ? program::ranks_let_in(lines_of(job, below[i].file), below[i].line, job.sources)
            : std::nullopt;
    if (!decorator) {
      continue;
    }
    // If the enclosing frame is the user's own decorator wrapper, it contains the test.
    const Path outer(callers.begin() + 1, callers.end());
    auto test = i + 1 < below.size()
                    ? branch_around(job, outer, below[i + 1], ours, wanted, our_ranks, their_ranks)
                    : std::nullopt;
    return test ? std::move(test) : branch_of_decorator(*decorator, below[i], ours);
  }
  return std::nullopt;
}

// Only one of the two lines is readable. A test of the rank around it that is true for its ranks
// and false for the others still separates them.
std::optional<Branch> branch_at_half(const model::JobModel& job, const Lines& lines,
                                     const Fork& fork, const model::RankSet& ours,
                                     const model::RankSet& theirs) {
  const bool know_ours = lines.contains(fork.ours.line);
  if (know_ours == lines.contains(fork.theirs.line)) {
    return std::nullopt;
  }
  const model::CallSite& known = know_ours ? fork.ours : fork.theirs;
  const auto holds_all = [](const Block& block, const model::RankSet& ranks, bool wanted) {
    return !ranks.empty() && std::all_of(ranks.begin(), ranks.end(), [&](model::Rank rank) {
      return holds_for(block.condition, rank) == wanted;
    });
  };
  for (const Block& block : program::enclosing(lines, known.line)) {
    if (block.kind != BlockKind::kIf || !holds_all(block, know_ours ? ours : theirs, true) ||
        !holds_all(block, know_ours ? theirs : ours, false)) {
      continue;
    }
    const program::Origin origin = origin_of(job, lines, block);
    if (dependence_of(origin) == Dependence::kRank || origin.source == program::Source::kUnknown) {
      return told_of(branch_of(block, known, Dependence::kRank, know_ours), origin);
    }
  }
  return std::nullopt;
}

// `if x is END: break`: the end of a loop over data.
bool ends_the_data(const Lines& lines, const Block& block) {
  const auto loop = program::loop_around(lines, block.line);
  const auto end = loop ? program::data_end_of(lines, loop->line) : std::nullopt;
  return end && end->noticed == block.line;
}

std::optional<Branch> branch_at(const model::JobModel& job, const Fork& fork, Dependence wanted,
                                const model::RankSet& ours, const model::RankSet& theirs,
                                std::optional<bool> ours_behind = std::nullopt) {
  if (graph::same_line(fork.ours, fork.theirs)) {
    return std::nullopt;
  }
  const Lines& lines = lines_of(job, fork.ours.file);
  if (auto half = wanted == Dependence::kRank ? branch_at_half(job, lines, fork, ours, theirs)
                                              : std::nullopt) {
    return half;
  }
  const auto behind =
      ours_behind ? std::optional(*ours_behind ? fork.ours.line : fork.theirs.line) : std::nullopt;
  const auto block = program::separating_branch(lines, fork.ours.line, fork.theirs.line, behind);
  if (!block || is_loop(*block) || ends_the_data(lines, *block)) {
    return std::nullopt;
  }
  const program::Origin origin = origin_of(job, lines, *block);
  if (!leads(job, lines, *block, origin, wanted, ours, theirs)) {
    return std::nullopt;
  }
  const bool to_ours = leads_to_first(lines, *block, fork.ours.line, fork.theirs.line);
  Branch branch =
      told_of(branch_of(*block, to_ours ? fork.ours : fork.theirs, wanted, to_ours), origin);
  add_other_ways_out(job, lines, to_ours ? fork.theirs : fork.ours, branch.guarded, branch);
  return branch;
}

int indent_of(const std::string& line) {
  const std::size_t at = line.find_first_not_of(" \t");
  return at == std::string::npos || line[at] == '#' ? -1 : static_cast<int>(at);
}

bool is_arm_header(std::string_view text) {
  text = base::trim(text);
  return text.starts_with("else") || text.starts_with("elif ");
}

// Two branches at one indentation with only branches of that indentation between them.
bool same_chain(const Lines& lines, const Block& first, const Block& second) {
  const Block& upper = first.line < second.line ? first : second;
  const Block& lower = first.line < second.line ? second : first;
  if (upper.line == lower.line || upper.indent != lower.indent || lower.kind == BlockKind::kIf) {
    return false;
  }
  for (auto line = lines.upper_bound(upper.line); line != lines.end() && line->first <= lower.line;
       ++line) {
    const int indent = indent_of(line->second);
    if (indent >= 0 && indent <= upper.indent && !is_arm_header(line->second) &&
        base::trim(line->second) != ")" && base::trim(line->second) != "):") {
      return false;
    }
  }
  return true;
}

/// An early exit below the fork that tests whether anything was collected: step counters are equal
/// everywhere, collected items are not.
std::optional<Branch> empty_below(const model::JobModel& job, const Path& below, bool ours) {
  for (const model::CallSite& site : below) {
    const Lines& lines = lines_of(job, site.file);
    for (const Block& block : program::deciding_branches(lines, site.line)) {
      if (!is_loop(block) && program::asks_for_any(lines, block.condition)) {
        return branch_of(block, site, Dependence::kData, ours);
      }
    }
  }
  return std::nullopt;
}

}  // namespace

bool may_hide_a_branch(const model::JobModel& job, const std::optional<Fork>& fork) {
  return fork && !fork->below_ours.empty() && lines_of(job, fork->ours.file).empty() &&
         !graph::same_line(fork->ours, fork->theirs);
}

std::optional<Branch> rank_branch(const model::JobModel& job, const Fork& fork,
                                  const model::RankSet& ours, const model::RankSet& theirs) {
  if (auto found = branch_below(job, fork, true, Dependence::kRank, ours, theirs)) {
    return found;
  }
  if (auto found = branch_at(job, fork, Dependence::kRank, ours, theirs)) {
    return found;
  }
  auto found = branch_below(job, fork, false, Dependence::kRank, ours, theirs);
  return found ? std::move(found) : registered_for_ranks(job, fork);
}

std::optional<Branch> data_branch(const model::JobModel& job, const Fork& fork, bool tie,
                                  std::optional<bool> ours_behind) {
  if (comes_through_logging(job, fork.ours, fork.below_ours)) {
    return std::nullopt;
  }
  auto ours = ours_behind.value_or(true) ? branch_below(job, fork, true, Dependence::kData, {}, {})
                                         : std::nullopt;
  const auto asks_own = [&job](const Branch& branch) {
    return reads_own(job, lines_of(job, branch.where.file),
                     {.line = branch.where.line, .text = {}, .condition = branch.condition});
  };
  const bool only_option = tie && ours && !asks_own(*ours);
  if (ours && !only_option) {
    return ours;
  }
  if (auto found = branch_at(job, fork, Dependence::kData, {}, {}, ours_behind)) {
    return found;
  }
  // The others' own conditions count only if they directly read data, because options guard half of
  // all training code. If the sides are of equal size, either may have taken the branch.
  auto theirs = ours_behind.value_or(false)
                    ? std::nullopt
                    : branch_below(job, fork, false, Dependence::kData, {}, {});
  const bool tests =
      theirs && theirs->condition.find_first_of("<>=(") != std::string::npos;  // not a bare flag
  const bool unlike = theirs && !unlike_variable(job, lines_of(job, theirs->where.file),
                                                 theirs->condition, theirs->where.line)
                                     .empty();
  if (theirs && (unlike || asks_own(*theirs) || (tie && !ours && tests))) {
    return theirs;
  }
  return ours;
}

std::optional<Branch> any_branch(const model::JobModel& job, const Fork& fork,
                                 std::optional<bool> ours_behind) {
  std::optional<Branch> empty;
  for (const bool ours : ours_behind ? std::vector{*ours_behind} : std::vector{true, false}) {
    if (auto found = branch_below(job, fork, ours, Dependence::kData, {}, {})) {
      return found;
    }
    empty = empty ? empty : empty_below(job, ours ? fork.below_ours : fork.below_theirs, ours);
  }
  return empty;
}

bool are_siblings(const model::JobModel& job, const Fork& fork) {
  const Lines& lines = lines_of(job, fork.ours.file);
  const std::vector<Block> ours = program::enclosing(lines, fork.ours.line);
  const std::vector<Block> theirs = program::enclosing(lines, fork.theirs.line);
  for (const Block& a : ours) {
    for (const Block& b : theirs) {
      if (is_arm(a) && is_arm(b) && same_chain(lines, a, b)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace ddpdoctor::detectors
