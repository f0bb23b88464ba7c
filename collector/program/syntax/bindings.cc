// SPDX-License-Identifier: Apache-2.0
#include "collector/program/syntax/bindings.h"

namespace ddpdoctor::program {
namespace {

class BindingCollector {
 public:
  explicit BindingCollector(const SourceIndex& index) : index_(index) {}

  void of_statement(std::size_t at) {
    statement_ = at;
    const Node node = index_.statements()[at].node;
    switch (node.kind()) {
      case NodeKind::kFor:
        bind(BindingKind::kFor, node.field(Field::kLeft), node.field(Field::kRight), false);
        expression(node.field(Field::kRight));
        return;
      case NodeKind::kFunction:
      case NodeKind::kClass:
        add(BindingKind::kDefine, node.field(Field::kName), {}, false);
        return;
      case NodeKind::kDelete:
        for (const Node child : node.children()) {
          bind(BindingKind::kDelete, child, {}, false);
        }
        return;
      case NodeKind::kImport:
      case NodeKind::kImportFrom:
        imports(node);
        return;
      case NodeKind::kCase:
        for (const Node child : node.children()) {
          if (child.is(NodeKind::kCasePattern)) {
            captures(child);
          }
        }
        expression(node.field(Field::kGuard));
        return;
      default:
        header_or_simple(node);
    }
  }

  std::vector<Binding> take() {
    return std::move(out_);
  }

 private:
  void header_or_simple(Node node) {
    const bool catches = node.is(NodeKind::kExcept);
    for (Node child = node.first_child(); child; child = child.next_sibling()) {
      if (child.is(NodeKind::kBlock) || is_clause(child.kind())) {
        continue;
      }
      if (catches && child.is(NodeKind::kAsPattern)) {
        as_pattern(BindingKind::kExcept, child);
      } else {
        expression(child);
      }
    }
  }

  /// Collects what an expression binds by :=, and what its method calls may change.
  void expression(Node node) {
    switch (node.kind()) {
      case NodeKind::kBlock:
      case NodeKind::kLambda:
        return;
      case NodeKind::kAssignment:
        bind(BindingKind::kAssign, node.field(Field::kLeft), last_value(node), false);
        break;
      case NodeKind::kAugmentedAssignment:
        bind(BindingKind::kAugmented, node.field(Field::kLeft), node.field(Field::kRight), false);
        break;
      case NodeKind::kNamed:
        bind(BindingKind::kNamed, node.field(Field::kName), node.field(Field::kValue), false);
        break;
      case NodeKind::kAsPattern:
        as_pattern(BindingKind::kWith, node);
        return;
      case NodeKind::kCall:
        method(node);
        break;
      default:
        break;
    }
    for (Node child = node.first_child(); child; child = child.next_sibling()) {
      expression(child);
    }
  }

  /// `a = b = value`: the inner assignment is the right side of the outer one.
  static Node last_value(Node assignment) {
    Node value = assignment.field(Field::kRight);
    while (value.is(NodeKind::kAssignment)) {
      value = value.field(Field::kRight);
    }
    return value;
  }

  void as_pattern(BindingKind kind, Node node) {
    const Node value = node.first_child();
    if (const Node target = node.field(Field::kAlias)) {
      bind(kind, target.first_child() ? target.first_child() : target, value, false);
    }
    expression(value);
  }

  void method(Node call) {
    const Node callee = call.field(Field::kFunction);
    const std::string on =
        callee.is(NodeKind::kAttribute) ? dotted_name(callee.field(Field::kObject)) : "";
    if (!on.empty()) {
      out_.push_back({.kind = BindingKind::kMethod,
                      .target = on,
                      .item = true,
                      .node = call,
                      .line = call.line(),
                      .statement = statement_});
    }
  }

  void bind(BindingKind kind, Node target, Node value, bool unpacked) {
    switch (target.kind()) {
      case NodeKind::kPatternList:
      case NodeKind::kTuplePattern:
      case NodeKind::kListPattern:
      case NodeKind::kTuple:
      case NodeKind::kList:
      case NodeKind::kExpressionList:
        each(kind, target, value, unpacked);
        return;
      case NodeKind::kListSplatPattern:
      case NodeKind::kListSplat:
      case NodeKind::kParenthesized:
      case NodeKind::kAsPatternTarget:
        bind(kind, target.first_child(), value, true);
        return;
      case NodeKind::kSubscript:
        add(kind, target.field(Field::kValue), value, unpacked, true);
        return;
      default:
        add(kind, target, value, unpacked);
    }
  }

  /// `a, b = c, d`: pairwise, if both sides have the same number of elements.
  void each(BindingKind kind, Node targets, Node value, bool unpacked) {
    const auto names = targets.children();
    const Node source = without_parentheses(value);
    const bool listed = source.is(NodeKind::kExpressionList) || source.is(NodeKind::kTuple) ||
                        source.is(NodeKind::kList);
    const auto values =
        listed && kind == BindingKind::kAssign ? source.children() : std::vector<Node>();
    const bool pairwise = values.size() == names.size() && !unpacked;
    for (std::size_t i = 0; i < names.size(); ++i) {
      bind(kind, names[i], pairwise ? values[i] : value, !pairwise);
    }
  }

  void add(BindingKind kind, Node target, Node value, bool unpacked, bool item = false) {
    std::string name = dotted_name(target);
    while (name.empty() && target) {  // f().x = 1, a[0].x = 1: the name through which it is reached
      target = target.is(NodeKind::kAttribute)   ? target.field(Field::kObject)
               : target.is(NodeKind::kSubscript) ? target.field(Field::kValue)
                                                 : Node();
      name = dotted_name(target);
      item = true;
    }
    if (!name.empty()) {
      out_.push_back({.kind = kind,
                      .target = std::move(name),
                      .item = item,
                      .value = value,
                      .unpacked = unpacked,
                      .node = target,
                      .line = target.line(),
                      .statement = statement_});
    }
  }

  void imports(Node node) {
    for (const Node name : node.fields(Field::kName)) {
      const Node alias = name.field(Field::kAlias);
      const Node bound = alias ? alias : name.is(NodeKind::kDottedName) ? name.first_child() : name;
      add(BindingKind::kImport, bound, {}, false);
    }
  }

  /// A single name in a pattern is captured; a dotted name is compared.
  void captures(Node node) {
    for (const Node child : node.children()) {
      if (child.is(NodeKind::kDottedName)) {
        if (child.children().size() == 1) {
          add(BindingKind::kCapture, child.first_child(), {}, true);
        }
      } else if (child.is(NodeKind::kName)) {
        add(BindingKind::kCapture, child, {}, true);
      } else {
        captures(child);
      }
    }
  }

  const SourceIndex& index_;
  std::size_t statement_ = kNone;
  std::vector<Binding> out_;
};

}  // namespace

std::vector<Binding> bindings_of(const SourceIndex& index, const Scope& scope) {
  BindingCollector collector(index);
  for (const std::size_t at : index.statements_of(scope)) {
    collector.of_statement(at);
  }
  return collector.take();
}

std::vector<Binding> bindings_at(const SourceIndex& index, std::size_t statement) {
  BindingCollector collector(index);
  collector.of_statement(statement);
  return collector.take();
}

std::string dotted_name(Node expression) {
  if (expression.is(NodeKind::kName)) {
    return std::string(expression.text());
  }
  if (expression.is(NodeKind::kAttribute)) {
    const std::string object = dotted_name(expression.field(Field::kObject));
    return object.empty() ? object
                          : object + "." + std::string(expression.field(Field::kAttribute).text());
  }
  return {};
}

bool may_change(const Binding& binding, std::string_view path) {
  const std::string& target = binding.target;
  return path == target || (path.starts_with(target) && path[target.size()] == '.');
}

}  // namespace ddpdoctor::program
