// SPDX-License-Identifier: Apache-2.0
#include "collector/values/callee_reader.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
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

constexpr int kDeepestCallee = 2;       // depth of calls inside called functions
constexpr std::size_t kMostCalls = 48;  // calls of one function
constexpr int kMostEntered = 96;        // functions entered per process

const program::Scope* scope_at(const program::SourceIndex& index, const Entry& entry) {
  for (const program::Scope& scope : index.scopes()) {
    if (scope.kind == program::ScopeKind::kFunction && scope.first_line == entry.first_line &&
        scope.name == entry.name) {
      return scope.is_async ? nullptr : &scope;
    }
  }
  return nullptr;
}

bool lies_in_loop(Node node, Node function) {
  for (Node outer = node; outer && outer != function; outer = outer.parent()) {
    if (outer.is(NodeKind::kFor) || outer.is(NodeKind::kWhile)) {
      return true;
    }
  }
  return false;
}

/// What may change a value in the function: of method calls only those of containers. by_calls()
/// checks what other calls assign.
std::vector<program::Binding> changes_in(const program::SourceIndex& index,
                                         const program::Scope& function) {
  std::vector<program::Binding> all = program::bindings_of(index, function);
  std::erase_if(all, [](const program::Binding& one) { return !changes_something(one); });
  return all;
}

/// Whether a function that this one calls assigns a name that a value was read from.
Since by_calls(const Effects& effects, const std::set<std::string>& called,
               const std::set<std::string>& read) {
  for (const std::string& name : read) {
    if (const auto writer = effects.writer(name, called)) {
      return {.freshness = Freshness::kStale,
              .reason = fmt::format("`{}` is assigned in line {}, in {}", name, writer->line,
                                    writer->function)};
    }
  }
  return {};
}

/// A function call that was followed from its start.
struct Then {
  const program::SourceIndex& index;
  const program::Scope& function;
  // Parameters whose value was different, with the reason.
  const std::map<std::string, std::string>& passed;
  std::vector<program::Binding> changes;  // in the function
  std::set<std::string> worked_out{};     // locals with a known value
};

/// Whether the parameters still determine the expression: not if the function assigns its names
/// before it, or anywhere in a surrounding loop. An attribute has the value that the whole function
/// left in it.
Since before(const Then& then, Node expression) {
  const bool in_loop = lies_in_loop(expression, then.function.node);
  const auto operands = operands_of(expression);
  for (const std::string& path : operands) {
    if (const auto one = then.passed.find(path.substr(0, path.find('.')));
        one != then.passed.end()) {
      return {.freshness = Freshness::kStale, .reason = one->second};
    }
  }
  for (const program::Binding& binding : then.changes) {
    const bool earlier = in_loop || binding.node.begin() < expression.begin();
    const bool reads = std::any_of(operands.begin(), operands.end(), [&](const auto& path) {
      const bool outlives = path.find('.') != std::string::npos;
      return (earlier || outlives) && program::may_change(binding, path);
    });
    if (reads && changes_something(binding) && !expression.holds(binding.node) &&
        !then.worked_out.contains(binding.target)) {
      return {.freshness = Freshness::kStale,
              .reason = fmt::format("`{}` is assigned in line {}", binding.target, binding.line)};
    }
  }
  return {};
}

/// `number = dist.get_rank()` among the first statements of a function: the only binding, of a
/// value that the function does not change.
bool is_settled(const Then& then, const program::Binding& binding,
                const std::vector<program::Binding>& all) {
  const bool plain = binding.kind == program::BindingKind::kAssign && !binding.item &&
                     !binding.unpacked && binding.value && binding.statement != program::kNone &&
                     binding.target.find('.') == std::string::npos;
  if (!plain || then.index.statements()[binding.statement].node.parent() != then.function.body) {
    return false;
  }
  const auto operands = operands_of(binding.value);
  const auto passed_otherwise = [&then](const std::string& path) {
    return then.passed.contains(path.substr(0, path.find('.')));
  };
  return std::none_of(operands.begin(), operands.end(), passed_otherwise) &&
         std::none_of(all.begin(), all.end(), [&](const program::Binding& other) {
           const bool again = &other != &binding && program::may_change(other, binding.target);
           const bool feeds = std::any_of(operands.begin(), operands.end(), [&](const auto& path) {
             return program::may_change(other, path);
           });
           return again || feeds;
         });
}

/// Evaluates locals that are assigned once, from values that do not change.
void settle(Then& then, Evaluator& evaluator, Names& names) {
  for (const program::Binding& binding : then.changes) {
    if (!is_settled(then, binding, then.changes)) {
      continue;
    }
    Value value = evaluator.evaluate(expression_of(binding.value), names);
    if (value.known() && evaluator.only_now().empty()) {
      names.bound.insert_or_assign(binding.target, std::move(value));
      then.worked_out.insert(binding.target);
    }
  }
}

}  // namespace

bool CalleeReader::tired() const {
  return entered_ >= kMostEntered || CpuClock::now() >= deadline_;
}

void CalleeReader::read(const program::Scope& function, int line, Names& names,
                        const Freshly& freshly, int depth) {
  std::vector<Node> calls = program::calls_within(function.body ? function.body : function.node);
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
  const auto since_of = [&](std::size_t part) {
    const Node node = part == 0                     ? callee.field(Field::kObject)
                      : part - 1 < arguments.size() ? arguments[part - 1]
                                                    : Node();
    return node ? freshly(node, call) : Since{};
  };
  std::map<std::size_t, std::string> since;  // why an argument is different now
  auto entry = evaluator_.enter(expression_of(call), names, [&](std::size_t part, Value value) {
    const Since one = since_of(part);
    if (one.freshness == Freshness::kFresh && !evaluator_.only_now().empty()) {
      since.emplace(part, evaluator_.only_now());
    }
    if (one.freshness != Freshness::kFresh) {
      since.emplace(part, one.reason);
    }
    return value;
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
  std::map<std::string, std::string> passed;  // parameters that had another value in the call
  for (const auto& [parameter, part] : entry->parts) {
    if (const auto one = since.find(part); one != since.end()) {
      passed.emplace(parameter, one->second);
    }
  }
  Then then{.index = *index,
            .function = *function,
            .passed = passed,
            .changes = changes_in(*index, *function)};
  settle(then, evaluator_, inside);
  std::set<std::string> called;
  add_called(function->body ? function->body : function->node, called);
  const Whereabouts where{.file = entry->file, .function = entry->qualname, .at = call.line()};
  for (const Decision& decision : program::decisions_of(*index, *function)) {
    if (tired()) {
      return;
    }
    using Kind = program::DecisionKind;
    const Since fresh = before(then, decision.condition);
    if (decision.is_test() && decision.kind != Kind::kFilter) {
      reader_.add(where,
                  {.condition = decision.condition,
                   .line = decision.line,
                   .since = fresh,
                   .assigned_since =
                       [&](const std::set<std::string>& read) {
                         return by_calls(files_.effects(pid_), called, read);
                       },
                   .since_of_part = [&then](Node part) { return before(then, part); }},
                  inside);
    } else if ((decision.kind == Kind::kFor || decision.kind == Kind::kIterate) &&
               fresh.freshness == Freshness::kFresh) {
      loops_.add_length(where, decision, fresh, inside);
    }
  }
  const Freshly inside_freshly = [&then](Node expression, Node) {
    return before(then, expression);
  };
  dispatch_.read(
      {.where = where, .function = *function, .names = inside, .freshly = inside_freshly});
  if (depth + 1 < kDeepestCallee) {
    read(*function, function->first_line, inside, inside_freshly, depth + 1);
  }
}

}  // namespace ddpdoctor::values
