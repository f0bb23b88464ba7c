// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/paths/fixed_loop.h"

#include <algorithm>

#include "base/text.h"
#include "base/word.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/origin/items.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/exits.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::BlockKind;
using Lines = program::SourceText;

/// "lines" of `for line in lines(rank)`; nothing for methods and for more than one call.
std::string_view called_in(const Block& loop) {
  const std::string_view text = loop.text;
  const std::size_t in = text.find(" in ");
  const std::size_t open = text.find('(', in == text.npos ? 0 : in);
  if (loop.kind != BlockKind::kFor || in == text.npos || open == text.npos ||
      text.find(')', open) + 1 != text.size()) {
    return {};
  }
  const std::string_view name = text.substr(in + 4, open - in - 4);
  return std::all_of(name.begin(), name.end(), base::is_word) ? name : std::string_view();
}

/// `def lines(…)` yields its items only in a loop with a fixed number of iterations.
bool gives_fixed_number(const model::JobModel& job, const Lines& lines, std::string_view function) {
  bool gives = false;
  for (const auto& [number, text] : lines) {
    const std::string_view code = base::trim(text);
    if (!code.starts_with("yield") || function_around(lines, number) != function) {
      continue;
    }
    const std::vector<Block> around = program::enclosing(lines, number);
    const auto deciding = program::deciding_branches(lines, number);
    const bool fixed = !code.starts_with("yield from") && around.size() >= 2 &&
                       around[0].kind == BlockKind::kFor &&
                       program::is_as_long_everywhere(lines, around[0].line, job.sources) &&
                       around[1].kind == BlockKind::kFunction &&
                       program::loop_exits(lines, number).empty() &&
                       std::all_of(deciding.begin(), deciding.end(), is_loop);
    if (!fixed) {
      return false;
    }
    gives = true;
  }
  return gives;
}

}  // namespace

bool is_fixed(const model::JobModel& job, const Lines& lines, const Block& loop, int inside) {
  const std::string_view called = called_in(loop);
  const bool as_long =
      loop.kind == BlockKind::kFor && program::is_as_long_everywhere(lines, loop.line, job.sources);
  if (!as_long && (called.empty() || !gives_fixed_number(job, lines, called))) {
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

bool is_filtered(const Lines& lines, const Block& loop, int inside) {
  for (const Block& block : program::deciding_branches(lines, inside)) {
    if (!is_loop(block) && block.line != loop.line && encloses(lines, loop, block.line)) {
      return true;
    }
  }
  return false;
}

}  // namespace ddpdoctor::detectors
