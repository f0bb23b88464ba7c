// SPDX-License-Identifier: Apache-2.0
// A syntax tree of Python, read-only. Kinds and fields are those of tree-sitter's grammar, as far
// as anyone here asks for them; its own headers are included by tree.cc alone.
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
  kToken,  // keywords, operators, brackets: has text and nothing else
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

/// One node, as a view: cheap to copy, valid as long as the SourceIndex it comes from. A node that
/// is not there is false, has no text and no children.
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
  /// On one line: one blank for a line break, none behind an opening bracket, without comments.
  [[nodiscard]] std::string one_line() const {
    return one_line_until(end());
  }
  /// The same from its first byte to another one behind it.
  [[nodiscard]] std::string one_line_until(std::uint32_t end) const;
  /// Columns of white space that its line begins with.
  [[nodiscard]] int indent() const;
  [[nodiscard]] int line() const;
  [[nodiscard]] int last_line() const;
  /// Byte offset among all nodes of the tree: for order and for asking whether one holds another.
  [[nodiscard]] std::uint32_t begin() const;
  [[nodiscard]] std::uint32_t end() const;
  [[nodiscard]] bool holds(Node other) const {
    return *this && other && begin() <= other.begin() && other.end() <= end();
  }

  [[nodiscard]] Node parent() const;
  /// Which of its parent's fields it is.
  [[nodiscard]] Field role() const;
  [[nodiscard]] Node field(Field field) const;
  [[nodiscard]] std::vector<Node> fields(Field field) const;
  /// Without tokens and comments, in the order of the source.
  [[nodiscard]] std::vector<Node> children() const;
  /// With tokens (operators, keywords, brackets) and comments.
  [[nodiscard]] std::vector<Node> all_children() const;
  [[nodiscard]] Node first_child() const;
  [[nodiscard]] Node next_sibling() const;
  /// Number of the node in its tree: parents before children, in the order of the source.
  [[nodiscard]] std::uint32_t id() const {
    return id_;
  }
  /// One past the number of the last node inside.
  [[nodiscard]] std::uint32_t end_id() const;

 private:
  const Tree* tree_ = nullptr;
  std::uint32_t id_ = 0;
};

/// `(a)` → `a`, however often it is wrapped.
Node without_parentheses(Node node);

}  // namespace ddpdoctor::program
