// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/generator_loop.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/code.h"
#include "collector/program/questions/expressions.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {
namespace {

using program::Block;
using program::NodeKind;
using Lines = program::SourceText;

bool mentions(std::string_view text, std::string_view word) {
  const auto words = program::words_in(text);
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// `for e in events:` at this line, with a single name for the item; empty for anything else.
std::string item_of(const Lines& lines, int line) {
  const program::Code code(lines);
  const std::size_t header = code.header_at(line);
  const program::Node item = header != program::kNone && code.kind(header) == NodeKind::kFor
                                 ? code[header].node.field(program::Field::kLeft)
                                 : program::Node();
  return item.is(NodeKind::kName) ? std::string(item.text()) : std::string();
}

/// The word of a condition that marks the items yielded after the generator's loop: it occurs in a
/// `yield` there and in none inside the loop.
bool is_given_out_behind(const Lines& lines, const Block& loop, int in_loop,
                         const std::vector<std::string_view>& words) {
  const auto extent = program::function_extent(lines, in_loop);
  if (!extent) {
    return false;
  }
  const auto yields = [&](int line, std::string_view word) {
    const std::string statement = program::statement_at(lines, line);
    const auto yielded = program::words_yielded(statement);
    return std::find(yielded.begin(), yielded.end(), word) != yielded.end();
  };
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) {
    bool behind = false;
    for (int line = loop.line; line <= extent->second; ++line) {
      if (!yields(line, word)) {
        continue;
      }
      if (encloses(lines, loop, line) || line == loop.line) {
        return false;
      }
      behind = true;
    }
    return behind;
  });
}

/// `consumer` is the side at the branch; `producer` fetches the next item.
bool is_at_the_next_item(const model::JobModel& job, const model::CallSite& consumer,
                         const model::CallSite& producer, const Path& below_producer,
                         const Branch& branch) {
  const Lines& lines = lines_of(job, producer.file);
  const std::string item = item_of(lines, producer.line);
  if (item.empty() || consumer.file != producer.file || branch.where.file != producer.file ||
      below_producer.empty() || !mentions(branch.condition, item)) {
    return false;
  }
  const std::vector<Block> around = program::enclosing(lines, branch.where.line);
  const bool in_body = std::any_of(around.begin(), around.end(), [&](const Block& block) {
    return is_loop(block) && block.line == producer.line;
  });
  if (!in_body) {
    return false;
  }
  const model::CallSite& inside = below_producer.back();
  const Lines& there = lines_of(job, inside.file);
  const auto loop = program::loop_around(there, inside.line);
  return loop &&
         is_given_out_behind(there, *loop, inside.line, program::words_in(branch.condition));
}

}  // namespace

bool tests_a_last_item(const model::JobModel& job, const Fork& fork, const Branch& branch) {
  return is_at_the_next_item(job, fork.ours, fork.theirs, fork.below_theirs, branch) ||
         is_at_the_next_item(job, fork.theirs, fork.ours, fork.below_ours, branch);
}

}  // namespace ddpdoctor::detectors
