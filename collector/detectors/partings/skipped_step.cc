// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/skipped_step.h"

#include <algorithm>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/partings/gradient_sync.h"
#include "collector/detectors/partings/side_questions.h"
#include "collector/detectors/paths/deciding_origin.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/graph/history.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/branches.h"
#include "collector/program/questions/data_ends.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/exceptions.h"
#include "collector/program/questions/exits.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::Dependence;
using Lines = program::SourceText;

std::optional<Block> round_of_both(const Lines& lines, const Fork& fork) {
  for (const Block& block : program::enclosing(lines, fork.theirs.line)) {
    if (is_loop(block) && encloses(lines, block, fork.ours.line)) {
      return block;
    }
  }
  return std::nullopt;
}

Branch caught(const Block& clause, const model::CallSite& at) {
  Branch out = branch_of(clause, at, Dependence::kData, false);
  out.condition = clause.text;
  out.catches = true;
  return out;
}

bool has_clause(const model::JobModel& job, const Lines& lines, int line, const Block& clause) {
  const std::vector<Block> all = program::swallowing_clauses(lines, line, job.sources);
  return std::any_of(all.begin(), all.end(),
                     [&clause](const Block& one) { return one.line == clause.line; });
}

/// The except clause at the end of a slice, whatever the helper returned and however it was tested.
std::optional<Branch> clause_of(const model::JobModel& job, const program::Origin& origin,
                                const Lines& asked) {
  for (const program::OriginStep& step : origin.chain) {
    const auto file = job.sources.find(step.file);
    const Lines& lines = file == job.sources.end() ? asked : file->second;
    if (const auto clause = program::failure_clause_at(lines, step.line)) {
      return caught(
          *clause,
          {.file = step.file, .line = step.line, .function = function_around(lines, step.line)});
    }
  }
  return std::nullopt;
}

/// A helper caught the exception, and its caller skipped the rest because of the helper's result.
std::optional<Branch> caught_in_helper(const model::JobModel& job, const model::CallSite& site) {
  const Lines& lines = lines_of(job, site.file);
  for (const program::Branching& one : program::branches_to(lines, site.line)) {
    const program::Origin origin =
        is_loop(one.block) ? program::Origin{} : origin_of(job, lines, one.block);
    if (origin.source == program::Source::kException) {
      if (auto found = clause_of(job, origin, lines)) {
        return found;
      }
    }
  }
  return std::nullopt;
}

/// Below the line of the fork, in functions that only the others have called, or around that line.
std::optional<Branch> caught_on_the_way(const model::JobModel& job, const Fork& fork,
                                        const std::optional<Block>& round) {
  for (const model::CallSite& site : fork.below_theirs) {
    const auto clauses =
        program::swallowing_clauses(lines_of(job, site.file), site.line, job.sources);
    if (!clauses.empty() && !only_retries(job, site)) {
      return caught(clauses.front(), site);
    }
  }
  for (const model::CallSite& site : round ? fork.below_theirs : Path{}) {
    if (auto found = caught_in_helper(job, site)) {
      return found;
    }
  }
  const Lines& lines = lines_of(job, fork.theirs.file);
  for (const Block& clause : program::swallowing_clauses(lines, fork.theirs.line, job.sources)) {
    // A clause around the whole loop would have ended it.
    if (round ? encloses(lines, *round, clause.line)
              : !has_clause(job, lines, fork.ours.line, clause)) {
      return caught(clause, fork.theirs);
    }
  }
  return std::nullopt;
}

std::optional<Branch> skip_by_data(const model::JobModel& job, const Lines& lines,
                                   const model::CallSite& waiting) {
  for (const Block& block : program::skips_before(lines, waiting.line)) {
    const program::Origin origin = origin_of(job, lines, block);
    const bool asks_for_none =
        origin.source != program::Source::kRank && origin.source >= program::Source::kUnknown;
    if (dependence_of(origin) == Dependence::kData || asks_for_none) {
      Branch out = branch_of(block, waiting, Dependence::kData, false);
      out.skips = true;
      return out;
    }
  }
  return std::nullopt;
}

/// Part of the iteration was skipped, by the nearest test before the call that leads past it and
/// may differ between ranks. Its value may come from the rank's own share of the data.
std::optional<Branch> passed_by(const model::JobModel& job, const Lines& lines, const Block& round,
                                const model::CallSite& waiting) {
  std::optional<Branch> nearest;
  for (const program::Branching& one : program::branches_to(lines, waiting.line)) {
    const bool past = one.block.line < waiting.line && !is_loop(one.block) &&
                      encloses(lines, round, one.block.line) &&
                      !encloses(lines, one.block, waiting.line);
    const program::Origin origin = past ? origin_of(job, lines, one.block) : program::Origin{};
    const bool may_differ =
        past && (origin.source != program::Source::kUniform || origin.like_an_option);
    if (may_differ && (!nearest || nearest->where.line < one.block.line)) {
      nearest = branch_of(one.block, waiting, Dependence::kData, false);
      nearest->skips = true;
    }
  }
  return nearest;
}

/// The side with more backward passes waits for the one that skipped one; otherwise the side that
/// is further in the source skipped something.
bool odd_waits(const graph::Examination& examination, const Explanation& explanation) {
  const Parting& parting = explanation.parting;
  const bool odd = in_backward(examination, parting.odd);
  const bool rest = in_backward(examination, parting.rest);
  return odd != rest ? odd : explanation.fork->ours.line < explanation.fork->theirs.line;
}

/// The odd ranks skipped the call in which the others are.
bool read_skip_of_odd(const graph::Examination& examination, Explanation& explanation) {
  const Parting& parting = explanation.parting;
  if (!parting.odd.calls() || !parting.rest.calls()) {
    return false;
  }
  if (in_backward(examination, parting.rest)) {
    const auto fewer = began_fewer_backwards(examination.job, parting);
    // A branch of the model also explains it, and is more common.
    if (fewer ? !*fewer : branch_in_forward(examination.job).has_value()) {
      return false;
    }
  }
  explanation.branch = skipped_step(examination.job, *explanation.fork);
  explanation.cause = explanation.branch ? Cause::kDivergent : explanation.cause;
  return explanation.branch.has_value();
}

}  // namespace

bool only_retries(const model::JobModel& job, const model::CallSite& site) {
  const program::SourceText& lines = lines_of(job, site.file);
  const std::vector<Block> around = program::enclosing(lines, site.line);
  const auto tries = std::find_if(around.begin(), around.end(), [](const Block& block) {
    return block.kind == program::BlockKind::kTry;
  });
  const auto loop = std::find_if(tries, around.end(), is_loop);
  return loop != around.end() && !program::comes_round(lines, loop->line, site.line);
}

std::optional<Branch> skipped_step(const model::JobModel& job, const Fork& fork) {
  if (graph::same_line(fork.ours, fork.theirs)) {
    // A framework called the user's code of the others, and is itself where ours are.
    return fork.below_ours.empty() ? caught_on_the_way(job, fork, std::nullopt) : std::nullopt;
  }
  const Lines& lines = lines_of(job, fork.theirs.file);
  const std::optional<Block> round = round_of_both(lines, fork);
  if (!round && fork.ours.line < fork.theirs.line) {
    return std::nullopt;
  }
  if (auto found = caught_on_the_way(job, fork, round)) {
    return found;
  }
  if (!round) {
    return std::nullopt;
  }
  auto in_helper = caught_in_helper(job, fork.theirs);
  return in_helper ? in_helper : skip_by_data(job, lines, fork.theirs);
}

std::optional<Branch> skipped_by_one_ahead(const model::JobModel& job, const Fork& fork) {
  if (auto found = caught_on_the_way(job, fork, std::nullopt)) {
    return found;
  }
  Path way = fork.below_theirs;
  way.push_back(fork.theirs);
  for (const model::CallSite& site : way) {
    if (auto found = skip_by_data(job, lines_of(job, site.file), site)) {
      return found;
    }
  }
  return std::nullopt;
}

std::optional<Branch> skipped_in(const model::JobModel& job, const Fork& fork,
                                 const LeftLoop& loop) {
  const Lines& lines = lines_of(job, fork.theirs.file);
  const auto around = program::enclosing(lines, fork.theirs.line);
  const auto round = std::find_if(around.begin(), around.end(), [&loop](const Block& block) {
    return is_loop(block) && block.line == loop.where.line;
  });
  if (round == around.end() || fork.theirs.file != loop.where.file) {
    return std::nullopt;
  }
  auto found = caught_on_the_way(job, fork, *round);
  if (!found) {
    found = caught_in_helper(job, fork.theirs);
  }
  if (!found) {
    found = passed_by(job, lines, *round, fork.theirs);
  }
  if (found) {
    found->equal_rounds = loop.where;
  }
  return found;
}

std::optional<bool> began_fewer_backwards(const model::JobModel& job, model::Rank one,
                                          model::Rank other) {
  std::optional<double> ours;
  std::optional<double> theirs;
  for (const model::Fact* fact : model::facts(job, "reducer")) {
    const double backwards = fact->number("backward").value_or(0);
    if (fact->rank == one) {
      ours = ours.value_or(0) + backwards;
    } else if (fact->rank == other) {
      theirs = theirs.value_or(0) + backwards;
    }
  }
  return ours && theirs ? std::optional(*ours < *theirs) : std::nullopt;
}

std::optional<bool> began_fewer_backwards(const model::JobModel& job, const Parting& parting) {
  return began_fewer_backwards(job, parting.odd.ranks.front(), parting.rest.ranks.front());
}

bool read_skipped_step(const graph::Examination& examination, Explanation& explanation) {
  Explanation turned = explanation;
  const bool turns = (turned.parting.tie || rest_is_past_backward(examination, turned.parting)) &&
                     odd_waits(examination, turned);
  if (turns) {
    turned.turn();
  }
  if (read_skip_of_odd(examination, turned)) {
    explanation = std::move(turned);
    return true;
  }
  // Either the side after a backward skipped it, or the side in it skipped the call in which the
  // others are: a caught exception on the path shows the latter.
  Explanation as_it_is = explanation;
  if (turns && read_skip_of_odd(examination, as_it_is) && as_it_is.branch->catches) {
    explanation = std::move(as_it_is);
    return true;
  }
  return false;
}

bool read_caught_step(const graph::Examination& examination, Explanation& explanation) {
  if (origin_of(examination.job, *explanation.branch).source != program::Source::kException) {
    return false;
  }
  Explanation skipped = explanation;
  if (!read_skipped_step(examination, skipped) || !skipped.branch->catches) {
    return false;
  }
  explanation = std::move(skipped);
  return true;
}

}  // namespace ddpdoctor::detectors
