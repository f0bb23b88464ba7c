// SPDX-License-Identifier: Apache-2.0
#include "collector/program/syntax/decisions.h"

#include <algorithm>

namespace ddpdoctor::program {
namespace {

class DecisionCollector {
 public:
  explicit DecisionCollector(const SourceIndex& index) : index_(index) {}

  void of_statement(std::size_t at) {
    statement_ = at;
    const Node node = index_.statements()[at].node;
    switch (node.kind()) {
      case NodeKind::kIf:
        header(DecisionKind::kIf, node, node.field(Field::kCondition));
        break;
      case NodeKind::kElif:
        header(DecisionKind::kElif, node, node.field(Field::kCondition));
        break;
      case NodeKind::kWhile:
        header(DecisionKind::kWhile, node, node.field(Field::kCondition));
        break;
      case NodeKind::kFor:
        header(DecisionKind::kFor, node, node.field(Field::kRight));
        break;
      case NodeKind::kAssert:
        add(DecisionKind::kAssert, node, node.first_child());
        inside(node);
        break;
      case NodeKind::kCase:
        of_case(node);
        break;
      case NodeKind::kExcept:
        add(DecisionKind::kExcept, node, caught(node));
        break;
      case NodeKind::kMatch:
        inside(node.field(Field::kSubject));
        break;
      case NodeKind::kWith:
        for (const Node child : node.children()) {
          if (child.is(NodeKind::kWithItems)) {
            inside(child);
          }
        }
        break;
      case NodeKind::kElse:
      case NodeKind::kTry:
      case NodeKind::kFinally:
        break;
      case NodeKind::kFunction:
        inside(node.field(Field::kParameters));
        break;
      case NodeKind::kClass:
        inside(node.field(Field::kSuperclasses));
        break;
      default:
        inside(node);
    }
  }

  void of_expression(Node expression) {
    statement_ = index_.statement_of(expression);
    expression_node(expression);
  }

  std::vector<Decision> take() {
    return std::move(out_);
  }

 private:
  void add(DecisionKind kind, Node owner, Node condition, Node subject = {}) {
    out_.push_back({.kind = kind,
                    .condition = condition,
                    .subject = subject,
                    .owner = owner,
                    .line = owner.line(),
                    .text = condition.one_line(),
                    .statement = statement_});
  }

  void header(DecisionKind kind, Node node, Node condition) {
    add(kind, node, condition);
    expression_node(condition);
  }

  /// `except (A, B) as e` → the expression before `as`.
  static Node caught(Node clause) {
    const Node first = clause.first_child();
    if (first.is(NodeKind::kAsPattern)) {
      return first.first_child();
    }
    return first.is(NodeKind::kBlock) ? Node() : first;
  }

  void of_case(Node node) {
    Node around = node.parent();
    while (around && !around.is(NodeKind::kMatch)) {
      around = around.parent();
    }
    const Node subject = around.field(Field::kSubject);
    for (const Node child : node.children()) {
      if (child.is(NodeKind::kCasePattern)) {
        add(DecisionKind::kCase, node, child, subject);
      }
    }
    if (const Node guard = node.field(Field::kGuard)) {
      add(DecisionKind::kGuard, node, guard.first_child());
      inside(guard);
    }
  }

  void inside(Node node) {
    for (Node child = node.first_child(); child; child = child.next_sibling()) {
      expression_node(child);
    }
  }

  void expression_node(Node node) {
    switch (node.kind()) {
      case NodeKind::kBlock:
      case NodeKind::kFunction:
      case NodeKind::kClass:
      case NodeKind::kLambda:
        return;
      case NodeKind::kConditional: {
        const auto parts = node.children();
        if (parts.size() == 3) {
          add(DecisionKind::kTernary, node, parts[1]);
        }
        break;
      }
      case NodeKind::kBoolean: {
        const bool all = node.field(Field::kOperator).text() == "and";
        add(all ? DecisionKind::kAnd : DecisionKind::kOr, node, node.field(Field::kLeft));
        break;
      }
      case NodeKind::kForIn:
        add(DecisionKind::kIterate, node, node.field(Field::kRight));
        break;
      case NodeKind::kIfClause:
        add(DecisionKind::kFilter, node, node.first_child());
        break;
      default:
        break;
    }
    inside(node);
  }

  const SourceIndex& index_;
  std::size_t statement_ = kNone;
  std::vector<Decision> out_;
};

}  // namespace

std::vector<Decision> decisions_of(const SourceIndex& index, const Scope& scope) {
  DecisionCollector collector(index);
  for (const std::size_t at : index.statements_of(scope)) {
    collector.of_statement(at);
  }
  return collector.take();
}

std::vector<Decision> decisions_in(const SourceIndex& index, Node expression) {
  DecisionCollector collector(index);
  collector.of_expression(expression);
  return collector.take();
}

bool is_frame_of_comprehension(std::string_view function) {
  const std::string_view name = function.substr(function.rfind('.') + 1);  // npos + 1 = 0
  return name == "<listcomp>" || name == "<dictcomp>" || name == "<setcomp>" || name == "<genexpr>";
}

std::vector<Decision> comprehension_at(const SourceIndex& index, int line) {
  std::vector<Decision> clauses;
  for (Decision& each : decisions_of(index, index.function_at(line))) {
    const Node whole = each.owner.parent();
    if (each.kind == DecisionKind::kIterate && whole.line() <= line && whole.last_line() >= line) {
      if (!clauses.empty() && clauses.front().owner.parent() != whole) {
        return {};
      }
      clauses.push_back(std::move(each));
    }
  }
  return clauses;
}

}  // namespace ddpdoctor::program
