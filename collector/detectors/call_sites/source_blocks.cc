// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/call_sites/source_blocks.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"

namespace ddpdoctor::detectors {

const python_source::Lines& lines_of(const model::JobModel& job, const std::string& file) {
  static const python_source::Lines kNone;
  const auto found = job.sources.find(file);
  return found == job.sources.end() ? kNone : found->second;
}

using python_source::Block;
using python_source::BlockKind;
using python_source::Dependence;
using python_source::Lines;

bool is_loop(const Block& block) {
  return block.kind == BlockKind::kFor || block.kind == BlockKind::kWhile;
}

bool encloses(const Lines& lines, const Block& block, int line) {
  const std::vector<Block> around = python_source::enclosing(lines, line);
  return std::any_of(around.begin(), around.end(),
                     [&block](const Block& one) { return one.line == block.line; });
}

std::string function_around(const python_source::Lines& lines, int line) {
  for (const python_source::Block& block : python_source::enclosing(lines, line)) {
    if (block.kind == python_source::BlockKind::kFunction) {
      const std::size_t start = block.text.find("def ");  // also behind "async"
      const std::size_t end = block.text.find('(');
      return start == std::string::npos || end == std::string::npos || end < start + 4
                 ? std::string()
                 : std::string(base::trim(block.text.substr(start + 4, end - start - 4)));
    }
  }
  return {};
}

bool names_a_rank(std::string_view condition) {
  constexpr std::array<std::string_view, 8> kWords = {
      "rank", "main", "master", "zero", "leader", "primary", "is_first", "coordinator"};
  return std::any_of(kWords.begin(), kWords.end(), [condition](std::string_view word) {
    return condition.find(word) != std::string_view::npos;
  });
}

Dependence dependence_of(const Lines& lines, const Block& block) {
  const Dependence on = python_source::dependence(block.condition, lines, block.line);
  const bool only_derived =
      on == Dependence::kRank && !names_a_rank(block.condition) && reads_data(block.condition);
  return only_derived ? Dependence::kData : on;
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
