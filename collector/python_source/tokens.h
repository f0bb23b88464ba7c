// SPDX-License-Identifier: Apache-2.0
// Lines of Python cut into tokens and logical statements. Knows strings, comments, brackets and
// continuation lines, and nothing of grammar. A gap in the line numbers ends whatever was open.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/python_source/blocks.h"

namespace ddpdoctor::python_source {

enum class TokenKind : std::uint8_t { kName, kNumber, kString, kOperator };

/// One token; `text` points into the Lines it was read from. `depth` counts the brackets around it
/// (a bracket has the depth outside).
struct Token {
  TokenKind kind = TokenKind::kOperator;
  std::string_view text;
  int line = 0;
  int depth = 0;
  bool spaced = false;  // white space or a line break before it

  [[nodiscard]] bool is(std::string_view word) const {
    return kind != TokenKind::kString && text == word;
  }
};

using Tokens = std::span<const Token>;

/// One logical line: a simple statement, several with ";", or a compound statement's header with
/// what follows on the line.
struct LogicalLine {
  int first_line = 0;
  int last_line = 0;
  int indent = 0;
  std::vector<Token> tokens;
};

std::vector<LogicalLine> logical_lines(const Lines& lines);

/// Tokens of a single expression; `expression` must outlive them.
std::vector<Token> tokens_of(std::string_view expression);

/// As written, with one blank for a line break, comments left out.
std::string text_of(Tokens tokens);

/// The parts between tokens that read `separator` at bracket depth `depth`; empty parts are kept.
std::vector<Tokens> split_at(Tokens tokens, std::string_view separator, int depth);

/// Index of the first such token at this depth, or tokens.size().
std::size_t find_token(Tokens tokens, std::string_view word, int depth);

/// "a", "b", "c" of each dotted chain a.b.c; calls and subscripts end a chain. `begin` is the index
/// of its first token.
struct NameChain {
  std::vector<std::string_view> words;
  std::size_t begin = 0;
  std::size_t end = 0;  // one past its last token
};
std::vector<NameChain> name_chains(Tokens tokens);

}  // namespace ddpdoctor::python_source
