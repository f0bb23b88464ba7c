// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/uses.h"

#include <algorithm>

#include "collector/program/libraries/libraries.h"
#include "collector/program/origin/definitions.h"
#include "collector/program/questions/fragment.h"
#include "collector/program/syntax/bindings.h"
#include "collector/program/syntax/source_index.h"

namespace ddpdoctor::program {
namespace {

template <class Visit>
void each_below(Node node, const Visit& visit) {
  visit(node);
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    each_below(child, visit);
  }
}

/// Visits everything in the innermost statement that covers a line, without the suite of a header.
template <class Visit>
void each_in_statement(const SourceText& text, int line, const Visit& visit) {
  const SourceIndex& index = index_of(text);
  const std::size_t at = index.empty() ? kNone : index.statement_at(line);
  if (at != kNone) {
    each_below(index.statements()[at].node, [&](Node node) {
      if (index.statement_of(node) == at) {
        visit(node);
      }
    });
  }
}

/// `isinstance(x, Name)`, `super(Name, self)`: test or select a class.
bool asks_for_class(Node call) {
  const std::string_view callee = call.field(Field::kFunction).text();
  return callee == "isinstance" || callee == "issubclass" || callee == "super";
}

/// The name only declares what something is; no value is created, passed or stored.
bool only_declares(Node name) {
  const NodeKind around = name.parent().kind();
  const bool defined = around == NodeKind::kFunction || around == NodeKind::kClass ||
                       around == NodeKind::kKeywordArgument;
  if (defined && name.role() == Field::kName) {
    return true;
  }
  for (Node node = name; node && node.parent() != node; node = node.parent()) {
    switch (node.kind()) {
      case NodeKind::kImport:
      case NodeKind::kImportFrom:
      case NodeKind::kDecorator:
      case NodeKind::kType:
      case NodeKind::kParameters:
        return true;
      case NodeKind::kCall:
        if (asks_for_class(node)) {
          return true;
        }
        break;
      case NodeKind::kArguments:
        if (node.role() == Field::kSuperclasses) {
          return true;
        }
        break;
      default:
        if (is_simple_statement(node.kind()) || is_header(node.kind())) {
          return false;
        }
    }
  }
  return false;
}

/// The condition of the innermost conditional expression whose value is the node.
std::string condition_around(Node node) {
  for (Node up = node; up && !is_simple_statement(up.kind()) && !is_header(up.kind());
       up = up.parent()) {
    const std::vector<Node> parts =
        up.is(NodeKind::kConditional) ? up.children() : std::vector<Node>();
    if (parts.size() == 3 && !parts[1].holds(node)) {
      return parts[1].one_line();
    }
    if (up.parent() == up) {
      break;
    }
  }
  return {};
}

void add_operands(Node node, std::vector<std::string>& out) {
  node = without_parentheses(node);
  if (node.is(NodeKind::kBoolean) || node.is(NodeKind::kNot)) {
    for (Node child = node.first_child(); child; child = child.next_sibling()) {
      add_operands(child, out);
    }
  } else if (node) {
    out.push_back(node.one_line());
  }
}

bool has_negated(Node node, std::string_view operand, bool negated) {
  node = without_parentheses(node);
  if (!node.is(NodeKind::kBoolean) && !node.is(NodeKind::kNot)) {
    return negated && node && node.one_line() == operand;
  }
  const bool inside = negated != node.is(NodeKind::kNot);
  bool found = false;
  for (Node child = node.first_child(); child; child = child.next_sibling()) {
    found = found || has_negated(child, operand, inside);
  }
  return found;
}

/// "self.boxes" of `not self.boxes`, `len(self.boxes) == 0`.
Node what_is_counted(Node condition) {
  Node node = without_parentheses(condition);
  if (node.is(NodeKind::kNot)) {
    node = without_parentheses(node.first_child());
  }
  if (node.is(NodeKind::kComparison)) {
    node = node.first_child();
  }
  const bool counts = node.is(NodeKind::kCall) && node.field(Field::kFunction).text() == "len";
  return counts ? node.field(Field::kArguments).first_child() : node;
}

/// `self.n += 1`, `self.boxes.append(x)`: a method that stores an argument and whose result is
/// unused.
bool takes_in(const Binding& binding) {
  return binding.kind == BindingKind::kAugmented ||
         (binding.kind == BindingKind::kMethod &&
          binding.node.parent().is(NodeKind::kExpressionStatement) &&
          binding.node.field(Field::kArguments).first_child());
}

std::string condition_inside(Node arguments) {
  std::string found;
  each_below(arguments, [&found](Node node) {
    const std::vector<Node> parts =
        node.is(NodeKind::kConditional) ? node.children() : std::vector<Node>();
    if (found.empty() && parts.size() == 3) {
      found = parts[1].one_line();
    }
  });
  return found;
}

}  // namespace

std::vector<Use> uses_of(const SourceText& text, std::string_view name) {
  std::vector<Use> out;
  const SourceIndex& index = index_of(text);
  if (index.empty() || name.empty()) {
    return out;
  }
  each_below(index.root(), [&](Node node) {
    if (node.is(NodeKind::kName) && node.text() == name && !only_declares(node)) {
      out.push_back({.line = node.line(), .condition = condition_around(node)});
    }
  });
  return out;
}

std::vector<Use> logging_setups(const SourceText& text) {
  std::vector<Use> out;
  for (const auto& [name, one] : facts_of(text).calls) {
    if (log_call(name) == LogCall::kSets) {
      std::string condition = condition_inside(one.call.field(Field::kArguments));
      out.push_back({.line = one.call.line(),
                     .condition = condition.empty() ? condition_around(one.call) : condition});
    }
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Use& a, const Use& b) { return a.line < b.line; });
  return out;
}

bool writes_to_log(const SourceText& text, int line) {
  bool found = false;
  each_in_statement(text, line, [&found](Node node) {
    const Node callee = node.is(NodeKind::kCall) ? node.field(Field::kFunction) : Node();
    found = found || (callee.is(NodeKind::kAttribute) &&
                      log_call(callee.field(Field::kAttribute).text()) == LogCall::kWrites);
  });
  return found;
}

std::vector<Wrapping> wrappings_of(const SourceText& text, std::string_view name) {
  std::vector<Wrapping> out;
  const FileFacts& facts = facts_of(text);
  const auto [begin, end] = facts.arguments.equal_range(name);
  for (auto one = begin; one != end; ++one) {
    const Node call = one->second.call;
    const std::size_t statement = facts.index->statement_of(call);
    out.push_back({.line = call.line(),
                   .callee = call.field(Field::kFunction).one_line(),
                   .statement = statement == kNone
                                    ? call.one_line()
                                    : facts.index->statements()[statement].node.one_line()});
  }
  return out;
}

std::vector<std::string> callees_at(const SourceText& text, int line, const Sources& sources) {
  std::vector<std::string> out;
  const Files files(text, sources);
  const File& file = files.file_of(text);
  each_in_statement(text, line, [&](Node node) {
    const std::string written =
        node.is(NodeKind::kCall) ? dotted_name(node.field(Field::kFunction)) : std::string();
    if (!written.empty()) {
      const SourceIndex& index = index_of(text);
      const std::size_t scope = index.statements()[index.statement_of(node)].scope;
      const Definition is = files.resolve(file, scope, written);
      out.push_back(is.kind == Definition::Kind::kLibrary ? is.qualified : written);
    }
  });
  return out;
}

std::vector<std::string> operands_of(std::string_view condition) {
  const Fragment fragment(condition);
  std::vector<std::string> out;
  add_operands(fragment.expression(), out);
  return out;
}

bool is_negated(std::string_view condition, std::string_view operand) {
  const Fragment fragment(condition);
  return has_negated(fragment.expression(), operand, false);
}

bool asks_for_any(const SourceText& text, std::string_view condition) {
  const Fragment fragment(condition);
  const std::string path = dotted_name(what_is_counted(fragment.expression()));
  if (path.find('.') == std::string::npos) {
    return false;
  }
  const FileFacts& facts = facts_of(text);
  const auto [begin, end] = facts.attributes.equal_range(last_of(path));
  return std::any_of(begin, end, [&path](const auto& one) {
    return one.second.binding.target == path && takes_in(one.second.binding);
  });
}

bool makes_text_at_once(const SourceText& text, int line) {
  bool found = false;
  each_in_statement(text, line, [&found](Node node) {
    const Node callee = node.is(NodeKind::kCall) ? node.field(Field::kFunction) : Node();
    const bool formats = callee.is(NodeKind::kAttribute) &&
                         callee.field(Field::kAttribute).text() == "format" &&
                         callee.field(Field::kObject).is(NodeKind::kString);
    const bool percent = node.is(NodeKind::kBinary) && node.field(Field::kOperator).text() == "%" &&
                         node.field(Field::kLeft).is(NodeKind::kString);
    found = found || formats || percent || node.is(NodeKind::kInterpolation) ||
            callee.text() == "str" || callee.text() == "repr";
  });
  return found;
}

}  // namespace ddpdoctor::program
