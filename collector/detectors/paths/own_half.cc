// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/own_half.h"

#include <algorithm>
#include <string>
#include <vector>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::Dependence;
using Lines = program::SourceText;

bool calls(const Lines& lines, int line, std::string_view operation) {
  const std::string statement = program::statement_at(lines, line);
  const std::vector<program::Call> all = program::calls_in(statement);
  return std::any_of(all.begin(), all.end(), [operation](const program::Call& call) {
    return program::last_name(call.callee) == operation;
  });
}

/// It tests the rank, or compares numbers with something of unknown origin.
bool may_be_rank(const model::JobModel& job, const Lines& lines, const Block& block,
                 const model::RankSet& ranks) {
  const program::Origin origin = origin_of(job, lines, block);
  return dependence_of(origin) == Dependence::kRank ||
         (origin.source == program::Source::kUnknown && !ranks.empty() &&
          holds_for(block.condition, ranks.front()).has_value());
}

/// A test of the rank, not around `first`, leads these ranks to the line, as far as it can be
/// evaluated.
bool is_for(const model::JobModel& job, const Lines& lines, int line, int first,
            const model::RankSet& ranks) {
  for (const Block& block : program::enclosing(lines, line)) {
    const bool tests = !block.condition.empty() && !is_loop(block) &&
                       !encloses(lines, block, first) && may_be_rank(job, lines, block, ranks);
    if (tests) {
      const bool holds = block.kind != program::BlockKind::kElse;
      return std::none_of(ranks.begin(), ranks.end(), [&](model::Rank rank) {
        return holds_for(block.condition, rank) == !holds;
      });
    }
  }
  return false;
}

}  // namespace

std::optional<OwnHalf> own_half(const model::JobModel& job, const model::CallSite& first,
                                std::string_view operation, const model::RankSet& ranks) {
  const Lines& lines = lines_of(job, first.file);
  const auto extent = program::function_extent(lines, first.line);
  if (!extent || operation.empty()) {
    return std::nullopt;
  }
  for (int line = first.line + 1; line <= extent->second; ++line) {
    if (!calls(lines, line, operation) || !is_for(job, lines, line, first.line, ranks)) {
      continue;
    }
    OwnHalf half{.call = {.file = first.file, .line = line, .function = first.function},
                 .way_out = std::nullopt};
    for (const Block& block : program::deciding_branches(lines, line)) {
      if (!is_loop(block) && block.line > first.line && !encloses(lines, block, line)) {
        half.way_out =
            Test{.where = {.file = first.file, .line = block.line, .function = first.function},
                 .condition = block.condition};
        break;
      }
    }
    return half;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
