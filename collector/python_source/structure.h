// SPDX-License-Identifier: Apache-2.0
// Logical lines arranged by indentation: which header each statement stands under.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "collector/python_source/tokens.h"

namespace ddpdoctor::python_source {

inline constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

/// A logical line with its place in the structure; indices are into Structure::statements.
struct Statement {
  LogicalLine logical;
  std::optional<BlockKind> kind;  // absent: a simple statement
  std::size_t keyword = 0;        // index of the header's keyword token (1 after `async`)
  std::size_t colon = kNowhere;   // index of the header's colon
  std::size_t parent = kNowhere;  // the header of the suite it stands in
  std::size_t opener =
      kNowhere;  // elif, else, except, finally, case: the header before it in its chain

  [[nodiscard]] Tokens tokens() const {
    return logical.tokens;
  }
  /// What a header tests, iterates or enters.
  [[nodiscard]] Tokens header() const;
  /// What stands behind the colon on the same line; for a simple statement all of it.
  [[nodiscard]] Tokens body() const;
  [[nodiscard]] bool has_inline_body() const {
    return kind && !body().empty();
  }
  [[nodiscard]] int line() const {
    return logical.first_line;
  }
};

/// The statements of a file in order. Points into the Lines it was made from.
struct Structure {
  std::vector<Statement> statements;

  /// The statement that covers a line, or kNowhere.
  [[nodiscard]] std::size_t at(int line) const;
  /// Headers around a statement, innermost first, up to and including its function.
  [[nodiscard]] std::vector<std::size_t> headers_around(std::size_t statement) const;
  /// The innermost function around a statement (itself when it is one's inline body), or kNowhere.
  [[nodiscard]] std::size_t function_around(std::size_t statement) const;
  /// One past the last statement of a header's suite.
  [[nodiscard]] std::size_t end_of_suite(std::size_t header) const;
  /// The last statement of a header's suite that stands in no suite of its own, or kNowhere.
  [[nodiscard]] std::size_t last_in_suite(std::size_t header) const;
  [[nodiscard]] bool encloses(std::size_t header, std::size_t statement) const;
};

/// Made once for a text; lives as long as its lines.
const Structure& structure_of(const Lines& lines);

/// if, elif, else, except, match, case: decided once each time they are reached.
bool is_branch(BlockKind kind);

}  // namespace ddpdoctor::python_source
