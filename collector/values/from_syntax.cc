// SPDX-License-Identifier: Apache-2.0
#include "collector/values/from_syntax.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace ddpdoctor::values {

namespace {

using program::Field;
using program::Node;
using program::NodeKind;
using ExpressionKind = Expression::Kind;

constexpr int kMostBranches = 16;    // branches of an entered function
constexpr int kDeepestSyntax = 100;  // nesting depth; deeper expressions are not evaluated anyway

Expression convert(Node node, int depth);

Expression made(ExpressionKind kind, Node node, std::string text = {}) {
  return {
      .kind = kind, .text = std::move(text), .parts = {}, .words = {}, .source = node.one_line()};
}

Expression other(Node node, std::string what) {
  return made(ExpressionKind::kOther, node, std::move(what));
}

Expression with_parts(ExpressionKind kind, Node node, const std::vector<Node>& parts, int depth,
                      std::string text = {}) {
  Expression out = made(kind, node, std::move(text));
  for (const Node part : parts) {
    out.parts.push_back(convert(part, depth + 1));
  }
  return out;
}

/// The text of a plain string literal; nothing for f-strings, bytes and strings with escapes.
std::optional<std::string> plain_string(Node node) {
  const std::string_view written = node.text();
  const std::size_t mark = written.find_first_of("'\"");
  if (mark == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view prefix = written.substr(0, mark);
  if (prefix.find_first_of("fFbBtT") != std::string_view::npos) {
    return std::nullopt;
  }
  const bool raw = prefix.find_first_of("rR") != std::string_view::npos;
  std::string out;
  for (const Node child : node.children()) {
    if (child.is(NodeKind::kInterpolation)) {
      return std::nullopt;
    }
    if (child.is(NodeKind::kStringContent)) {
      out += child.text();
    }
  }
  return raw || out.find('\\') == std::string::npos ? std::optional(out) : std::nullopt;
}

/// f"do_{phase}": a sum of strings; nothing with formats, conversions and escapes.
std::optional<Expression> formatted(Node node, int depth) {
  const std::string_view written = node.text();
  const std::string_view prefix = written.substr(0, written.find_first_of("'\""));
  if (prefix != "f" && prefix != "F") {
    return std::nullopt;
  }
  Expression out = made(ExpressionKind::kString, node);
  for (const Node child : node.children()) {
    const bool value = child.is(NodeKind::kInterpolation);
    const auto parts = child.children();
    const bool plain = value ? parts.size() == 1 && child.all_children().size() == 3
                             : child.is(NodeKind::kStringContent) && parts.empty();
    if (!plain && (value || child.is(NodeKind::kStringContent))) {
      return std::nullopt;
    }
    if (plain) {
      Expression sum = made(ExpressionKind::kBinary, node, "+");
      sum.parts = {std::move(out),
                   value ? convert(parts[0], depth + 1)
                         : made(ExpressionKind::kString, child, std::string(child.text()))};
      out = std::move(sum);
    }
  }
  return out;
}

Expression string_of(Node node, int depth) {
  if (auto sum = node.is(NodeKind::kString) ? formatted(node, depth) : std::nullopt) {
    return std::move(*sum);
  }
  std::string text;
  const std::vector<Node> parts =
      node.is(NodeKind::kConcatenatedString) ? node.children() : std::vector<Node>{node};
  for (const Node part : parts) {
    const auto one = plain_string(part);
    if (!one) {
      return other(node, "a string that is put together");
    }
    text += *one;
  }
  return made(ExpressionKind::kString, node, std::move(text));
}

/// "not in" and "is not" with any spacing.
std::string operator_text(Node token) {
  std::string text(token.text());
  if (text.starts_with("not")) {
    return "not in";
  }
  return text.starts_with("is") && text.size() > 2 ? "is not" : text;
}

Expression comparison_of(Node node, int depth) {
  Expression out = with_parts(ExpressionKind::kCompare, node, node.children(), depth);
  for (const Node token : node.fields(Field::kOperators)) {
    out.words.push_back(operator_text(token));
  }
  return out.words.size() + 1 == out.parts.size() ? out : other(node, "a comparison");
}

/// One `for` over names, and tests.
Expression comprehension_of(Node node, int depth) {
  const bool set = node.is(NodeKind::kSetComprehension);
  Expression out =
      with_parts(ExpressionKind::kComprehension, node, {node.field(Field::kBody)}, depth,
                 node.is(NodeKind::kGenerator) ? "generator"
                 : set                         ? "set"
                                               : "list");
  for (const Node clause : node.children()) {
    if (clause.is(NodeKind::kIfClause)) {
      out.parts.push_back(convert(clause.first_child(), depth + 1));
    } else if (clause.is(NodeKind::kForIn)) {
      const Node target = clause.field(Field::kLeft);
      const auto names = target.is(NodeKind::kName) ? std::vector<Node>{target} : target.children();
      const bool plain = out.words.empty() && !clause.text().starts_with("async") &&
                         std::ranges::all_of(names, [](Node n) { return n.is(NodeKind::kName); });
      if (!plain || names.empty()) {
        return other(node, "a comprehension");
      }
      for (const Node name : names) {
        out.words.emplace_back(name.text());
      }
      out.parts.push_back(convert(clause.field(Field::kRight), depth + 1));
    }
  }
  return out.words.empty() ? other(node, "a comprehension") : out;
}

Expression call_of(Node node, int depth) {
  const Node arguments = node.field(Field::kArguments);
  if (arguments.is(NodeKind::kGenerator)) {
    Expression out =
        with_parts(ExpressionKind::kCall, node, {node.field(Field::kFunction), arguments}, depth);
    out.words.emplace_back();
    return out;
  }
  if (!arguments.is(NodeKind::kArguments)) {
    return other(node, "a call");
  }
  Expression out = with_parts(ExpressionKind::kCall, node, {node.field(Field::kFunction)}, depth);
  for (const Node argument : arguments.children()) {
    if (argument.is(NodeKind::kListSplat) || argument.is(NodeKind::kDictionarySplat)) {
      out.words.emplace_back("*");
      out.parts.push_back(other(argument, "a call with unpacked arguments"));
      continue;
    }
    const bool keyword = argument.is(NodeKind::kKeywordArgument);
    out.words.emplace_back(keyword ? argument.field(Field::kName).text() : std::string_view());
    out.parts.push_back(convert(keyword ? argument.field(Field::kValue) : argument, depth + 1));
  }
  return out;
}

Expression subscript_of(Node node, int depth) {
  const std::vector<Node> keys = node.fields(Field::kSubscript);
  if (keys.size() != 1 || keys[0].is(NodeKind::kSlice)) {
    return other(node, "a slice");
  }
  return with_parts(ExpressionKind::kSubscript, node, {node.field(Field::kValue), keys[0]}, depth);
}

std::string what_it_is(Node node) {
  switch (node.kind()) {
    case NodeKind::kAwait:
      return "it awaits";
    case NodeKind::kYield:
      return "it yields";
    case NodeKind::kLambda:
      return "a lambda";
    case NodeKind::kDictionaryComprehension:
      return "a comprehension";
    case NodeKind::kDictionary:
      return "a dict";
    default:
      return "an expression that is not evaluated here";
  }
}

Expression convert(Node node, int depth) {
  node = program::without_parentheses(node);
  if (!node || depth > kDeepestSyntax) {
    return other(node, "an expression that is nested too deep");
  }
  const auto pair = [&](ExpressionKind kind, std::string text = {}) {
    return with_parts(kind, node, {node.field(Field::kLeft), node.field(Field::kRight)}, depth,
                      std::move(text));
  };
  const auto sign = [&] { return std::string(node.field(Field::kOperator).text()); };
  switch (node.kind()) {
    case NodeKind::kName:
      return made(ExpressionKind::kName, node, std::string(node.text()));
    case NodeKind::kAttribute:
      return with_parts(ExpressionKind::kAttribute, node, {node.field(Field::kObject)}, depth,
                        std::string(node.field(Field::kAttribute).text()));
    case NodeKind::kSubscript:
      return subscript_of(node, depth);
    case NodeKind::kCall:
      return call_of(node, depth);
    case NodeKind::kInteger:
      return made(ExpressionKind::kInteger, node, std::string(node.text()));
    case NodeKind::kFloat:
      return made(ExpressionKind::kFloat, node, std::string(node.text()));
    case NodeKind::kString:
    case NodeKind::kConcatenatedString:
      return string_of(node, depth);
    case NodeKind::kTrue:
      return made(ExpressionKind::kTrue, node);
    case NodeKind::kFalse:
      return made(ExpressionKind::kFalse, node);
    case NodeKind::kNone:
      return made(ExpressionKind::kNone, node);
    case NodeKind::kTuple:
    case NodeKind::kExpressionList:
      return with_parts(ExpressionKind::kTuple, node, node.children(), depth);
    case NodeKind::kList:
      return with_parts(ExpressionKind::kList, node, node.children(), depth);
    case NodeKind::kSet:
      return with_parts(ExpressionKind::kSet, node, node.children(), depth);
    case NodeKind::kBinary:
      return pair(ExpressionKind::kBinary, sign());
    case NodeKind::kBoolean:
      return pair(sign() == "and" ? ExpressionKind::kAnd : ExpressionKind::kOr);
    case NodeKind::kUnary:
      return with_parts(ExpressionKind::kUnary, node, {node.field(Field::kArgument)}, depth,
                        sign());
    case NodeKind::kNot:
      return with_parts(ExpressionKind::kNot, node, {node.field(Field::kArgument)}, depth);
    case NodeKind::kComparison:
      return comparison_of(node, depth);
    case NodeKind::kConditional: {
      const std::vector<Node> parts = node.children();  // then, the test, else
      return parts.size() == 3 ? with_parts(ExpressionKind::kConditional, node,
                                            {parts[1], parts[0], parts[2]}, depth)
                               : other(node, "a conditional expression");
    }
    case NodeKind::kGenerator:
    case NodeKind::kListComprehension:
    case NodeKind::kSetComprehension:
      return comprehension_of(node, depth);
    case NodeKind::kNamed:
      return with_parts(ExpressionKind::kNamed, node, {node.field(Field::kValue)}, depth,
                        std::string(node.field(Field::kName).text()));
    default:
      return other(node, what_it_is(node));
  }
}

/// The assignment `name = value`; a null node for anything else.
Node plain_assignment(Node statement) {
  const Node only = statement.is(NodeKind::kExpressionStatement) ? statement.first_child() : Node();
  const bool plain = only.is(NodeKind::kAssignment) && only.field(Field::kLeft).is(NodeKind::kName);
  return plain && only.field(Field::kRight) ? only : Node();
}

/// `self.name = value`, with the first parameter as `self`; a null node for anything else.
Node own_attribute_assignment(Node statement, std::string_view self) {
  const Node only = statement.is(NodeKind::kExpressionStatement) ? statement.first_child() : Node();
  const Node left = only.is(NodeKind::kAssignment) ? only.field(Field::kLeft) : Node();
  const bool own = left.is(NodeKind::kAttribute) && left.field(Field::kObject).text() == self;
  return own && only.field(Field::kRight) ? only : Node();
}

bool is_docstring(Node statement) {
  return statement.is(NodeKind::kExpressionStatement) &&
         statement.first_child().is(NodeKind::kString);
}

/// What the statements return; `budget` limits the branches, because each repeats the code after
/// it.
std::optional<Expression> returned(const std::vector<Node>& statements, std::size_t first,
                                   int& budget) {
  for (std::size_t i = first; i < statements.size(); ++i) {
    const Node statement = statements[i];
    if (is_docstring(statement) || statement.is(NodeKind::kPass)) {
      continue;
    }
    if (statement.is(NodeKind::kReturn)) {
      const Node value = statement.first_child();
      return value ? convert(value, 0)
                   : Expression{.kind = ExpressionKind::kNone, .source = "None"};
    }
    if (statement.is(NodeKind::kRaise)) {
      return Expression{
          .kind = ExpressionKind::kOther, .text = "it raises", .source = statement.one_line()};
    }
    if (const Node binding = plain_assignment(statement)) {
      auto rest = returned(statements, i + 1, budget);
      if (!rest) {
        return std::nullopt;
      }
      Expression let{.kind = ExpressionKind::kLet,
                     .text = std::string(binding.field(Field::kLeft).text()),
                     .source = statement.one_line()};
      let.parts = {convert(binding.field(Field::kRight), 0), std::move(*rest)};
      return let;
    }
    if (!statement.is(NodeKind::kIf) || --budget < 0) {
      return std::nullopt;
    }
    // Each branch of the if, followed by the statements after it.
    const auto way = [&](Node block) {
      std::vector<Node> all = block.children();
      all.insert(all.end(), statements.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                 statements.end());
      return returned(all, 0, budget);
    };
    // The test, and what the branch returns.
    std::vector<std::pair<Node, std::optional<Expression>>> arms;
    arms.emplace_back(statement.field(Field::kCondition),
                      way(statement.field(Field::kConsequence)));
    std::optional<Expression> otherwise;
    bool has_else = false;
    for (const Node clause : statement.fields(Field::kAlternative)) {
      if (clause.is(NodeKind::kElif)) {
        arms.emplace_back(clause.field(Field::kCondition), way(clause.field(Field::kConsequence)));
      } else {
        has_else = true;
        otherwise = way(clause.field(Field::kBody));
      }
    }
    if (!has_else) {
      otherwise = returned(statements, i + 1, budget);
    }
    for (std::size_t arm = arms.size(); arm-- > 0;) {
      if (!otherwise || !arms[arm].second) {
        return std::nullopt;
      }
      Expression choice{.kind = ExpressionKind::kConditional, .source = arms[arm].first.one_line()};
      choice.parts = {convert(arms[arm].first, 0), std::move(*arms[arm].second),
                      std::move(*otherwise)};
      otherwise = std::move(choice);
    }
    return otherwise;
  }
  return Expression{.kind = ExpressionKind::kNone, .source = "None"};
}

}  // namespace

Expression expression_of(Node node) {
  return convert(node, 0);
}

std::optional<Expression> returned_by(Node function) {
  if (function.is(NodeKind::kLambda)) {
    return convert(function.field(Field::kBody), 0);
  }
  if (!function.is(NodeKind::kFunction) || function.text().starts_with("async")) {
    return std::nullopt;
  }
  int budget = kMostBranches;
  return returned(function.field(Field::kBody).children(), 0, budget);
}

std::optional<Expression> made_by(Node init) {
  const auto parameters = init.field(Field::kParameters).children();
  if (!init.is(NodeKind::kFunction) || parameters.empty()) {
    return std::nullopt;
  }
  const std::string_view self = parameters.front().text();
  Expression made{.kind = ExpressionKind::kMade,
                  .source = std::string(init.field(Field::kName).text())};
  for (const Node statement : init.field(Field::kBody).children()) {
    const Node assigned = own_attribute_assignment(statement, self);
    if (assigned) {
      made.words.emplace_back(assigned.field(Field::kLeft).field(Field::kAttribute).text());
      made.parts.push_back(convert(assigned.field(Field::kRight), 0));
    } else if (!is_docstring(statement) && !statement.is(NodeKind::kPass)) {
      return std::nullopt;
    }
  }
  return made;
}

}  // namespace ddpdoctor::values
