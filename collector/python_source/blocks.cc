// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/blocks.h"

#include <algorithm>

#include "collector/python_source/rank_words.h"
#include "collector/python_source/structure.h"

namespace ddpdoctor::python_source {
namespace {

/// A header whose suite stands on its own line leads to that line, too: `if rank == 0:
/// dist.barrier()`.
bool body_is_on(const Statement& statement, int line) {
  return statement.has_inline_body() && statement.body().front().line <= line;
}

}  // namespace

std::vector<Block> enclosing(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  std::vector<Block> out;
  if (at == kNowhere) {
    return out;
  }
  if (body_is_on(structure.statements[at], line)) {
    out.push_back(block_of(structure, at));
    if (structure.statements[at].kind == BlockKind::kFunction) {
      return out;
    }
  }
  for (const std::size_t header : structure.headers_around(at)) {
    out.push_back(block_of(structure, header));
  }
  return out;
}

std::optional<Block> rank_decorator(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  const std::size_t function = at == kNowhere ? kNowhere : structure.function_around(at);
  if (function == kNowhere) {
    return std::nullopt;
  }
  const int indent = structure.statements[function].logical.indent;
  for (std::size_t i = function; i-- > 0;) {
    const Statement& statement = structure.statements[i];
    if (statement.logical.indent != indent || !statement.tokens().front().is("@")) {
      return std::nullopt;
    }
    const Tokens decorator = statement.tokens().subspan(1);
    for (const NameChain& chain : name_chains(decorator)) {
      if (std::any_of(chain.words.begin(), chain.words.end(), is_rank_decorator)) {
        Block out;
        out.kind = BlockKind::kFunction;
        out.line = statement.line();
        out.indent = indent;
        out.text = text_of(statement.tokens());
        out.condition = text_of(decorator);
        return out;
      }
    }
  }
  return std::nullopt;
}

std::optional<std::pair<int, int>> function_extent(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  const std::size_t function = at == kNowhere ? kNowhere : structure.function_around(at);
  if (function == kNowhere) {
    return std::nullopt;
  }
  const std::size_t end = structure.end_of_suite(function);
  return std::pair(structure.statements[function].line(),
                   structure.statements[end - 1].logical.last_line);
}

std::optional<Block> loop_around(const Lines& lines, int line) {
  for (const Block& block : enclosing(lines, line)) {
    if (is_loop(block.kind)) {
      return block;
    }
  }
  return std::nullopt;
}

std::string statement_at(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  return at == kNowhere ? std::string() : text_of(structure.statements[at].tokens());
}

}  // namespace ddpdoctor::python_source
