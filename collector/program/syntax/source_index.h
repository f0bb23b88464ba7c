// SPDX-License-Identifier: Apache-2.0
// One parsed file and its structure: statements, functions, classes. Built once per text (index_of)
// and shared; everything it returns lives as long as the index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/program/source_text.h"
#include "collector/program/syntax/node.h"

namespace ddpdoctor::program {

inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);

enum class ScopeKind : std::uint8_t { kModule, kClass, kFunction, kLambda };

/// A parameter of a function.
struct Parameter {
  enum class Kind : std::uint8_t { kPositionalOnly, kPlain, kStar, kKeywordOnly, kDoubleStar };
  std::string_view name;
  Kind kind = Kind::kPlain;
  Node otherwise;  // its default
};

/// A region with its own local names: the module, a class, a function, a lambda.
struct Scope {
  ScopeKind kind = ScopeKind::kModule;
  std::string name;       // as frames show it: "<module>", "step", "<lambda>"
  std::string qualified;  // qualified name: "Trainer.step", "fit.<locals>.hook"
  Node node;              // the definition (the whole file for the module)
  Node body;              // its block; a lambda's expression
  int first_line = 0;     // line of the `def` or of the first decorator
  int header_line = 0;    // line of the `def`
  int last_line = 0;
  std::vector<Parameter> parameters;
  std::vector<Node> decorators;  // the expressions after "@"
  bool is_async = false;
  bool is_generator = false;
  std::size_t outer = kNone;  // index of the scope around it
};

/// A simple statement, or a header with its suite; elif, else, except, finally, case and decorators
/// count as headers of their own. In source order.
struct Statement {
  Node node;
  int line = 0;
  int last_line = 0;  // for a header, the last line before its suite
  // The header whose suite contains it; for a clause, that of its owner.
  std::size_t parent = kNone;
  std::size_t owner = kNone;  // for a clause: its if, for, while, try or match
  std::size_t scope = 0;      // index of the scope it runs in
  std::size_t end = 0;        // one past the last statement of its suite and its clauses
};

class SourceIndex {
 public:
  /// Without structure: the index of a text that is not Python.
  SourceIndex() = default;
  explicit SourceIndex(const SourceText& text);

  /// Empty: no line of the file is known, it is too large to parse, or it is not Python.
  [[nodiscard]] bool empty() const {
    return statements_.empty();
  }
  [[nodiscard]] Node root() const;
  /// The module first, then the others in source order.
  [[nodiscard]] std::span<const Scope> scopes() const {
    return scopes_;
  }
  [[nodiscard]] std::span<const Statement> statements() const {
    return statements_;
  }

  /// The innermost function around a line, including its decorators and its `def`; the module's
  /// scope if there is none.
  [[nodiscard]] const Scope& function_at(int line) const;
  /// The scope in which a frame of this name runs at this line; also a class body or a lambda.
  [[nodiscard]] const Scope* scope_of_frame(int line, std::string_view name) const;
  /// The innermost statement that covers a line, else kNone.
  [[nodiscard]] std::size_t statement_at(int line) const;
  /// The statement that contains a node.
  [[nodiscard]] std::size_t statement_of(Node node) const;
  /// The statements of a scope itself, without the scopes inside it.
  [[nodiscard]] std::vector<std::size_t> statements_of(const Scope& scope) const;

 private:
  std::shared_ptr<const class Tree> tree_;
  std::vector<Scope> scopes_;
  std::vector<Statement> statements_;
};

/// The parsed form of a file, built on first use.
const SourceIndex& index_of(const SourceText& text);

/// The text is in another language: its index is empty until the text is edited.
void is_not_python(const SourceText& text);

/// A `yield` inside the node that belongs to the function around the node.
bool yields(Node node);

bool is_simple_statement(NodeKind kind);
/// if, elif, else, for, while, try, except, finally, with, match, case, def, class.
bool is_header(NodeKind kind);
bool is_clause(NodeKind kind);

}  // namespace ddpdoctor::program
