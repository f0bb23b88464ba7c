// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/source_blocks.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/dependence.h"
#include "collector/program/questions/uses.h"

namespace ddpdoctor::detectors {

const program::SourceText& lines_of(const model::JobModel& job, const std::string& file) {
  static const program::SourceText kNone;
  const auto found = job.sources.find(file);
  return found == job.sources.end() ? kNone : found->second;
}

using program::Block;
using program::BlockKind;
using program::Dependence;
using Lines = program::SourceText;

bool is_loop(const Block& block) {
  return block.kind == BlockKind::kFor || block.kind == BlockKind::kWhile;
}

bool encloses(const Lines& lines, const Block& block, int line) {
  const std::vector<Block> around = program::enclosing(lines, line);
  return std::any_of(around.begin(), around.end(),
                     [&block](const Block& one) { return one.line == block.line; });
}

std::string function_around(const program::SourceText& lines, int line) {
  for (const program::Block& block : program::enclosing(lines, line)) {
    if (block.kind == program::BlockKind::kFunction) {
      const std::size_t start = block.text.find("def ");  // also after "async"
      const std::size_t end = block.text.find('(');
      return start == std::string::npos || end == std::string::npos || end < start + 4
                 ? std::string()
                 : std::string(base::trim(block.text.substr(start + 4, end - start - 4)));
    }
  }
  return {};
}

program::Origin origin_of(const model::JobModel& job, const Lines& lines, const Block& block,
                          const Path& callers) {
  program::CallString frames;
  for (const model::CallSite& site : callers) {
    frames.push_back(
        {.text = &lines_of(job, site.file), .function = site.function, .line = site.line});
  }
  return program::origin_of(block.condition,
                            {.text = &lines, .line = block.line, .callers = &frames}, job.sources);
}

Dependence dependence_of(const program::Origin& origin) {
  if (origin.source == program::Source::kRank) {
    return Dependence::kRank;
  }
  const bool may_differ = origin.source >= program::Source::kUnknown && !origin.like_an_option;
  return may_differ ? Dependence::kData : Dependence::kNone;
}

Dependence dependence_of(const model::JobModel& job, const Lines& lines, const Block& block) {
  return dependence_of(origin_of(job, lines, block));
}

bool reads_own(const model::JobModel& job, const Lines& lines, const Block& block) {
  const program::Origin origin = origin_of(job, lines, block);
  return program::is_own(origin.source) && !origin.like_an_option;
}

bool asks_for(const model::JobModel& job, const Lines& lines, const Block& block,
              program::Source source) {
  const auto operands = program::operands_of(block.condition);
  return std::any_of(operands.begin(), operands.end(), [&](const std::string& operand) {
    return program::origin_of(operand, {.text = &lines, .line = block.line}, job.sources).source ==
           source;
  });
}

bool is_unproven(const program::Origin& origin) {
  return origin.source == program::Source::kUnknown ||
         (origin.source == program::Source::kRank && origin.by_name);
}

Branch branch_of(const Block& block, const model::CallSite& guarded, Dependence on,
                 bool leads_to_ours) {
  return {.where = {.file = guarded.file, .line = block.line, .function = guarded.function},
          .condition = block.condition.empty() ? block.text : block.condition,
          .on = on,
          .leads_to_ours = leads_to_ours,
          .guarded = guarded};
}

}  // namespace ddpdoctor::detectors
