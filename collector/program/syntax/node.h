// SPDX-License-Identifier: Apache-2.0
// A read-only syntax tree of Python. Kinds and fields are those of tree-sitter's grammar that our
// code needs; only tree.cc includes tree-sitter's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::program {

enum class NodeKind : std::uint8_t {
  kOther,
  kError,
  kToken,  // keywords, operators, brackets: has only text
  kComment,
  kModule,
  kBlock,
  // statements
  kExpressionStatement,
  kReturn,
  kRaise,
  kBreak,
  kContinue,
  kPass,
  kAssert,
  kDelete,
  kGlobal,
  kNonlocal,
  kImport,
  kImportFrom,
  kTypeAlias,
  // headers
  kIf,
  kElif,
  kElse,
  kFor,
  kWhile,
  kTry,
  kExcept,
  kFinally,
  kWith,
  kMatch,
  kCase,
  kFunction,
  kClass,
  kDecorated,
  kDecorator,
  kWithItems,
  kWithItem,
  // expressions
  kName,
  kAttribute,
  kSubscript,
  kSlice,
  kCall,
  kArguments,
  kKeywordArgument,
  kInteger,
  kFloat,
  kString,
  kConcatenatedString,
  kStringContent,
  kInterpolation,
  kTrue,
  kFalse,
  kNone,
  kEllipsis,
  kTuple,
  kList,
  kSet,
  kDictionary,
  kPair,
  kParenthesized,
  kBinary,
  kUnary,
  kNot,
  kBoolean,
  kComparison,
  kConditional,
  kNamed,  // x := y
  kAssignment,
  kAugmentedAssignment,
  kLambda,
  kListComprehension,
  kSetComprehension,
  kDictionaryComprehension,
  kGenerator,
  kForIn,
  kIfClause,
  kAwait,
  kYield,
  kListSplat,
  kDictionarySplat,
  kExpressionList,
  kDottedName,
  kAliasedImport,
  kType,
  // targets, parameters, patterns of cases
  kPatternList,
  kTuplePattern,
  kListPattern,
  kListSplatPattern,
  kDictionarySplatPattern,
  kAsPattern,
  kAsPatternTarget,
  kParameters,
  kLambdaParameters,
  kDefaultParameter,
  kTypedParameter,
  kTypedDefaultParameter,
  kPositionalSeparator,
  kKeywordSeparator,
  kCasePattern,
};

enum class Field : std::uint8_t {
  kNone,
  kAlias,
  kAlternative,
  kArgument,
  kArguments,
  kAttribute,
  kBody,
  kCause,
  kCondition,
  kConsequence,
  kDefinition,
  kExpression,
  kFunction,
  kGuard,
  kKey,
  kLeft,
  kModuleName,
  kName,
  kObject,
  kOperator,
  kOperators,
  kParameters,
  kRight,
  kSubject,
  kSubscript,
  kSuperclasses,
  kType,
  kValue,
};

class Tree;

/// A view of one node: cheap to copy, valid as long as its SourceIndex. A missing node converts to
/// false and has no text and no children.
class Node {
 public:
  Node() = default;
  Node(const Tree* tree, std::uint32_t id) : tree_(tree), id_(id) {}

  explicit operator bool() const {
    return tree_ != nullptr;
  }
  bool operator==(const Node&) const = default;

  [[nodiscard]] NodeKind kind() const;
  [[nodiscard]] bool is(NodeKind kind) const {
    return *this && this->kind() == kind;
  }
  /// tree-sitter's own name: "binary_operator".
  [[nodiscard]] std::string_view grammar_name() const;
  /// As written, with comments and line breaks.
  [[nodiscard]] std::string_view text() const;
  /// On one line: each line break becomes one blank (none after an opening bracket), comments are
  /// removed.
  [[nodiscard]] std::string one_line() const {
    return one_line_until(end());
  }
  /// The same, from the node's first byte to the later byte `end`.
  [[nodiscard]] std::string one_line_until(std::uint32_t end) const;
  /// Columns of white space at the start of its line.
  [[nodiscard]] int indent() const;
  [[nodiscard]] int line() const;
  [[nodiscard]] int last_line() const;
  /// Byte offset in the tree's text, to compare order and containment of nodes.
  [[nodiscard]] std::uint32_t begin() const;
  [[nodiscard]] std::uint32_t end() const;
  [[nodiscard]] bool holds(Node other) const {
    return *this && other && begin() <= other.begin() && other.end() <= end();
  }

  [[nodiscard]] Node parent() const;
  /// Its field in its parent.
  [[nodiscard]] Field role() const;
  [[nodiscard]] Node field(Field field) const;
  [[nodiscard]] std::vector<Node> fields(Field field) const;
  /// Without tokens and comments, in source order.
  [[nodiscard]] std::vector<Node> children() const;
  /// With tokens (operators, keywords, brackets) and comments.
  [[nodiscard]] std::vector<Node> all_children() const;
  [[nodiscard]] Node first_child() const;
  [[nodiscard]] Node next_sibling() const;
  /// Number of the node in its tree: parents before children, in source order.
  [[nodiscard]] std::uint32_t id() const {
    return id_;
  }
  /// One past the number of the last node inside.
  [[nodiscard]] std::uint32_t end_id() const;

 private:
  const Tree* tree_ = nullptr;
  std::uint32_t id_ = 0;
};

/// `(a)` → `a`, at any depth of nesting.
Node without_parentheses(Node node);

/// Calls inside a node, outer ones first; not those of functions that are defined there.
std::vector<Node> calls_within(Node node);

}  // namespace ddpdoctor::program
