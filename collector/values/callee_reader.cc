// SPDX-License-Identifier: Apache-2.0
#include "collector/values/callee_reader.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>

#include "collector/model/questions.h"
#include "collector/values/from_syntax.h"

namespace ddpdoctor::values {

namespace {

using program::Decision;
using program::Field;
using program::Node;
using program::NodeKind;

constexpr int kDeepest = 2;             // calls in functions that were called
constexpr std::size_t kMostCalls = 48;  // of one function
constexpr int kMostEntered = 96;        // functions of one process

void add_calls(Node node, std::vector<Node>& out) {
  for (const Node child : node.children()) {
    if (child.is(NodeKind::kFunction) || child.is(NodeKind::kClass) ||
        child.is(NodeKind::kLambda)) {
      continue;
    }
    if (child.is(NodeKind::kCall)) {
      out.push_back(child);
    }
    add_calls(child, out);
  }
}

const program::Scope* scope_at(const program::SourceIndex& index, const Entry& entry) {
  const std::string name = entry.qualname.substr(entry.qualname.rfind('.') + 1);
  for (const program::Scope& scope : index.scopes()) {
    if (scope.kind == program::ScopeKind::kFunction && scope.first_line == entry.first_line &&
        scope.name == name) {
      return scope.is_async || scope.is_generator ? nullptr : &scope;
    }
  }
  return nullptr;
}

/// In a function that runs from its begin: what it assigns before the expression, or anywhere when
/// the expression lies in a loop, is not what its parameters say.
Since before(const program::SourceIndex& index, const program::Scope& function, Node expression) {
  bool in_loop = false;
  for (Node outer = expression; outer && outer != function.node; outer = outer.parent()) {
    in_loop = in_loop || outer.is(NodeKind::kFor) || outer.is(NodeKind::kWhile);
  }
  const auto operands = operands_of(expression);
  for (const program::Binding& binding : program::bindings_of(index, function)) {
    const bool earlier = in_loop || binding.node.begin() < expression.begin();
    const bool reads = std::any_of(
        operands.begin(), operands.end(),
        [&binding](const std::string& path) { return program::may_change(binding, path); });
    if (earlier && reads && !expression.holds(binding.node)) {
      return {.freshness = Freshness::kStale,
              .reason = fmt::format("`{}` is assigned in line {}", binding.target, binding.line)};
    }
  }
  return {};
}

}  // namespace

bool CalleeReader::tired() const {
  return entered_ >= kMostEntered || CpuClock::now() >= deadline_;
}

void CalleeReader::read(const program::Scope& function, int line, Names& names,
                        const Freshly& freshly, int depth) {
  std::vector<Node> calls;
  add_calls(function.body ? function.body : function.node, calls);
  std::stable_sort(calls.begin(), calls.end(), [line](Node a, Node b) {
    return std::abs(a.line() - line) < std::abs(b.line() - line);
  });
  calls.resize(std::min(calls.size(), kMostCalls));
  for (const Node call : calls) {
    if (tired()) {
      return;
    }
    enter(call, names, freshly, depth);
  }
}

void CalleeReader::enter(Node call, Names& names, const Freshly& freshly, int depth) {
  const Node callee = call.field(Field::kFunction);
  if (freshly(callee, call).freshness == Freshness::kNotReached ||
      !(callee.is(NodeKind::kName) || callee.is(NodeKind::kAttribute))) {
    return;
  }
  const auto arguments = call.field(Field::kArguments).children();
  const auto entry =
      evaluator_.enter(expression_of(call), names, [&](std::size_t part, Value value) {
        const Node node = part == 0                     ? callee.field(Field::kObject)
                          : part - 1 < arguments.size() ? arguments[part - 1]
                                                        : Node();
        const Since since = node ? freshly(node, call) : Since{};
        return since.freshness == Freshness::kFresh ? value : Value::unknown(since.reason);
      });
  if (!entry || !model::is_user_file(entry->file) ||
      running_.contains({entry->file, entry->first_line})) {
    return;
  }
  const program::SourceIndex* index = files_.index(pid_, entry->file);
  const program::Scope* function = index == nullptr ? nullptr : scope_at(*index, *entry);
  if (function == nullptr) {
    return;
  }
  ++entered_;
  stacks::Scope scope = entry->scope;
  Names inside{.scope = &scope, .bound = entry->bound};
  const Whereabouts where{.file = entry->file, .function = entry->qualname, .at = call.line()};
  for (const Decision& decision : program::decisions_of(*index, *function)) {
    if (tired()) {
      return;
    }
    if (decision.is_test() && decision.kind != program::DecisionKind::kFilter) {
      reader_.add(where,
                  {.condition = decision.condition,
                   .line = decision.line,
                   .since = before(*index, *function, decision.condition)},
                  inside);
    }
  }
  if (depth + 1 < kDeepest) {
    read(
        *function, function->first_line, inside,
        [&](Node expression, Node) { return before(*index, *function, expression); }, depth + 1);
  }
}

}  // namespace ddpdoctor::values
