// SPDX-License-Identifier: Apache-2.0
// The statements of a file for the queries of this folder: enclosing headers, suites, chains of
// clauses. Skips headers that were inserted for a gap (whole_text.h).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::program {

class Code {
 public:
  explicit Code(const SourceText& text);

  [[nodiscard]] const SourceText& text() const {
    return text_;
  }
  [[nodiscard]] const SourceIndex& index() const {
    return index_;
  }
  [[nodiscard]] const Statement& operator[](std::size_t i) const {
    return all_[i];
  }
  [[nodiscard]] std::size_t size() const {
    return all_.size();
  }
  [[nodiscard]] NodeKind kind(std::size_t i) const {
    return all_[i].node.kind();
  }
  [[nodiscard]] bool is_loop(std::size_t i) const {
    return kind(i) == NodeKind::kFor || kind(i) == NodeKind::kWhile;
  }

  /// The innermost statement on a known line, else kNone.
  [[nodiscard]] std::size_t at(int line) const;
  /// The header on a line, even if its suite is on the same line; else kNone.
  [[nodiscard]] std::size_t header_at(int line) const;
  /// The header whose suite contains a statement, else kNone.
  [[nodiscard]] std::size_t parent(std::size_t i) const;
  /// Innermost first, up to and including the function.
  [[nodiscard]] std::vector<std::size_t> headers_around(std::size_t i) const;
  [[nodiscard]] std::size_t function_around(std::size_t i) const;
  /// The innermost loop around a statement in its function, else kNone.
  [[nodiscard]] std::size_t loop_around(std::size_t i) const;

  /// The statements directly in a header's suite.
  [[nodiscard]] Node suite(std::size_t header) const;
  /// One past the last statement of a header's suite; excludes its clauses, includes the cases of a
  /// match.
  [[nodiscard]] std::size_t end_of_suite(std::size_t header) const;
  [[nodiscard]] bool encloses(std::size_t header, std::size_t i) const {
    return i > header && i < end_of_suite(header);
  }
  /// The header before a clause in its chain; kNone if it is unknown.
  [[nodiscard]] std::size_t link_before(std::size_t clause) const;
  /// The if, for, while, try or match that a clause belongs to.
  [[nodiscard]] std::size_t owner(std::size_t i) const;
  /// elif, else, except, finally or case of a header, in order.
  [[nodiscard]] std::vector<std::size_t> clauses(std::size_t header) const;
  /// Both are links of one if…elif…else or try…except chain, or cases of one match.
  [[nodiscard]] bool same_chain(std::size_t a, std::size_t b) const;

  /// `if rank == 0`, on one line, without the colon.
  [[nodiscard]] std::string header_text(std::size_t header) const;
  /// The expression that a header tests, iterates, enters or catches; empty if there is none.
  [[nodiscard]] std::string header_expression(std::size_t header) const;
  /// The nodes of the statement itself, without its suite and clauses.
  [[nodiscard]] std::vector<Node> own_parts(std::size_t i) const;
  /// Everything that shares its lines with a statement: `if x: f()`, `a(); b()`.
  [[nodiscard]] std::string logical_line(std::size_t i) const;

 private:
  [[nodiscard]] bool is_made_up(std::size_t i) const;

  const SourceText& text_;
  const SourceIndex& index_;
  std::span<const Statement> all_;
};

/// Calls `visit` with a node and all nodes inside it, in source order, except bodies of lambdas,
/// strings and suites.
template <class Visit>
void each_inside(Node node, const Visit& visit) {
  if (!node || node.is(NodeKind::kBlock)) {
    return;
  }
  visit(node);
  if (node.is(NodeKind::kString)) {
    return;
  }
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    each_inside(child, visit);
  }
}

}  // namespace ddpdoctor::program
