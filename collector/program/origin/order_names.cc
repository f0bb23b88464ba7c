// SPDX-License-Identifier: Apache-2.0
// Order that names carry: every known place that binds or fills them.
#include <algorithm>

#include "collector/program/origin/iterable.h"
#include "collector/program/origin/order_slice.h"

namespace ddpdoctor::program {
namespace {

bool takes_in(std::string_view method) {
  return is_one_of(method,
                   {"append", "appendleft", "extend", "add", "update", "setdefault", "insert"});
}

bool sorts(const Binding& binding) {
  return binding.kind == BindingKind::kMethod &&
         binding.node.field(Field::kFunction).field(Field::kAttribute).text() == "sort";
}

/// The binding gives a new value and does not modify the old one.
bool is_value(const Binding& binding) {
  return !binding.item &&
         (binding.kind == BindingKind::kAssign || binding.kind == BindingKind::kNamed) &&
         static_cast<bool>(binding.value);
}

/// `[]`, `{}`, `list()`, `dict()`: an empty container that is filled later.
bool is_empty(Node value) {
  value = without_parentheses(value);
  if (value.is(NodeKind::kList) || value.is(NodeKind::kDictionary)) {
    return value.children().empty();
  }
  return value.is(NodeKind::kCall) && arguments_of(value).empty() &&
         is_one_of(value.field(Field::kFunction).text(), {"list", "dict", "OrderedDict"});
}

/// The statement is in the suite of the use or in one around it, before the use, so it certainly
/// ran before.
bool surely_before(const File& file, std::size_t statement, std::size_t use) {
  const auto statements = file.facts->index->statements();
  const std::size_t suite = statements[statement].parent;
  if (statements[statement].line >= statements[use].line) {
    return false;
  }
  for (std::size_t at = use; at != kNone; at = statements[at].parent) {
    if (statements[at].parent == suite) {
      return true;
    }
  }
  return false;
}

/// Removes bindings that a later, certain binding before the use has replaced.
std::vector<BoundIn> reaching(const File& file, std::vector<BoundIn> bindings, std::size_t use) {
  if (use == kNone) {
    return bindings;
  }
  int last = 0;
  for (const BoundIn& one : bindings) {
    const bool sets = is_value(one.binding) && one.binding.statement != kNone &&
                      surely_before(file, one.binding.statement, use);
    last = sets ? std::max(last, one.binding.line) : last;
  }
  const int line = file.facts->index->statements()[use].line;
  std::erase_if(bindings, [&](const BoundIn& one) {
    // A value set after the use exists there only in the next iteration, and is replaced by then.
    const bool behind = last > 0 && is_value(one.binding) && one.binding.line > line;
    return one.binding.line < last || behind;
  });
  return bindings;
}

Node argument(Node call, const Scope& function, std::size_t position, std::size_t index) {
  std::size_t at = 0;
  for (const Node one : arguments_of(call)) {
    if (one.is(NodeKind::kKeywordArgument)) {
      if (one.field(Field::kName).text() == function.parameters[index].name) {
        return one.field(Field::kValue);
      }
    } else if (at++ == position) {
      return one;
    }
  }
  return {};
}

/// An `if` around the binding decides whether it runs.
bool is_under_a_test(const Binding& binding, const File& file) {
  const auto statements = file.facts->index->statements();
  std::size_t at = binding.statement;
  while (at != kNone && statements[at].parent != kNone) {
    at = statements[at].parent;
    const NodeKind kind = statements[at].node.kind();
    if (kind == NodeKind::kIf || kind == NodeKind::kElif || kind == NodeKind::kElse) {
      return true;
    }
    if (kind == NodeKind::kFunction || kind == NodeKind::kClass) {
      return false;
    }
  }
  return false;
}

/// The part of the value for one of several targets: `set()` for `seen` in `todo, seen = [],
/// set()`.
Node piece_of(const Binding& binding) {
  const std::vector<Node> targets = binding.node.parent().children();
  const std::vector<Node> values = binding.value.children();
  const auto at = std::find(targets.begin(), targets.end(), binding.node);
  const bool pairs =
      (binding.value.is(NodeKind::kTuple) || binding.value.is(NodeKind::kExpressionList)) &&
      targets.size() == values.size() && at != targets.end();
  return pairs ? values[static_cast<std::size_t>(at - targets.begin())] : Node();
}

}  // namespace

OrderFound OrderSlice::of_returns(const Definition& function, int depth) {
  if (!open_.insert({function.file, function.scope, "()"}).second) {
    return {};
  }
  OrderFound out;
  for (const std::size_t at :
       function.file->facts->index->statements_of(function.file->scopes()[function.scope])) {
    const Node statement = function.file->facts->index->statements()[at].node;
    if (statement.is(NodeKind::kReturn) && out.order == OwnOrder::kFixed) {
      out = of(statement.first_child(), *function.file, function.scope, depth + 1);
      add_order_step(out, statement, *function.file);
    }
  }
  open_.erase({function.file, function.scope, "()"});
  return out;
}

OrderFound OrderSlice::of_name(Node node, const File& file, std::size_t scope, int depth) {
  const std::string dotted = dotted_name(node);
  if (dotted.empty()) {
    return {};
  }
  const Definition is = node.is(NodeKind::kName) ? files_.lookup(file, scope, dotted)
                                                 : files_.resolve(file, scope, dotted);
  if (is.kind == Definition::Kind::kVariable) {
    const bool here = is.file == &file && is.scope == scope;
    return of_variable(is, here ? file.facts->index->statement_of(node) : kNone, depth);
  }
  return node.is(NodeKind::kAttribute) && is.kind == Definition::Kind::kUnknown
             ? of_attribute(node, file, depth)
             : OrderFound{};
}

OrderFound OrderSlice::of_variable(const Definition& is, std::size_t use, int depth) {
  const std::tuple<const File*, std::size_t, std::string> key{is.file, is.scope, is.name};
  if (is_agreed(is) || !open_.insert(key).second) {
    return {};
  }
  std::vector<BoundIn> bindings;
  for (const Binding& one : is.file->facts->of_scope[is.scope]) {
    if (one.target == is.name) {
      bindings.push_back({.scope = is.scope, .binding = one});
    }
  }
  OrderFound out = of_bindings(reaching(*is.file, std::move(bindings), use), *is.file, depth);
  const auto& parameters = is.file->scopes()[is.scope].parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool assigned = std::any_of(is.file->facts->of_scope[is.scope].begin(),
                                      is.file->facts->of_scope[is.scope].end(),
                                      [&is](const Binding& one) { return one.target == is.name; });
    if (parameters[i].name == is.name && !assigned) {
      out = of_parameter(*is.file, is.scope, i, depth);
    }
  }
  open_.erase(key);
  return out;
}

OrderFound OrderSlice::of_attribute(Node node, const File& file, int depth) {
  const std::string name(node.field(Field::kAttribute).text());
  const std::tuple<const File*, std::size_t, std::string> key{&file, kNone, name};
  if (!open_.insert(key).second) {
    return {};
  }
  std::vector<BoundIn> bindings;
  const auto [first, last] = file.facts->attributes.equal_range(name);
  for (auto one = first; one != last; ++one) {
    bindings.push_back(one->second);
  }
  OrderFound out = of_bindings(bindings, file, depth);
  open_.erase(key);
  return out;
}

/// Every certain value has an order of its own, or is empty and filled in such an order. An
/// in-place sort counts only if it is unconditional (not `if args.deterministic: names.sort()`).
OrderFound OrderSlice::of_bindings(const std::vector<BoundIn>& bindings, const File& file,
                                   int depth) {
  OrderFound out;
  OrderFound filled;
  for (const auto& [scope, one] : bindings) {
    if (sorts(one)) {
      if (is_under_a_test(one, file)) {
        continue;
      }
      return {};
    }
    if (is_value(one) && !is_empty(one.value)) {
      const Node value = one.unpacked ? piece_of(one) : one.value;
      OrderFound found = value ? of(value, file, scope, depth + 1) : OrderFound{};
      if (found.order == OwnOrder::kFixed && is_under_a_test(one, file)) {
        continue;
      }
      if (found.order == OwnOrder::kFixed) {
        return {};
      }
      add_order_step(found, one.node, file);
      out = std::move(found);
    } else if (filled.order == OwnOrder::kFixed) {
      filled = of_fill(one, file, scope, depth);
      add_order_step(filled, one.node, file);
    }
  }
  return out.order == OwnOrder::kFixed ? filled : out;
}

OrderFound OrderSlice::of_fill(const Binding& binding, const File& file, std::size_t scope,
                               int depth) {
  const bool method =
      binding.kind == BindingKind::kMethod &&
      takes_in(binding.node.field(Field::kFunction).field(Field::kAttribute).text());
  if (binding.kind == BindingKind::kAugmented) {
    return of(binding.value, file, scope, depth + 1);
  }
  if (!binding.item && !method) {
    return {};
  }
  OrderFound out = of_loop_around(binding.statement, file, scope, depth);
  return out.order == OwnOrder::kFixed && method ? of_arguments(binding.node, file, scope, depth)
                                                 : out;
}

/// `for x in s: out.append(f(x))`: filled in the loop's order.
OrderFound OrderSlice::of_loop_around(std::size_t statement, const File& file, std::size_t scope,
                                      int depth) {
  const auto statements = file.facts->index->statements();
  for (std::size_t at = statement == kNone ? kNone : statements[statement].parent;
       at != kNone && statements[at].scope == scope; at = statements[at].parent) {
    if (statements[at].node.is(NodeKind::kFor)) {
      OrderFound found = of(statements[at].node.field(Field::kRight), file, scope, depth + 1);
      if (found.order != OwnOrder::kFixed) {
        return found;
      }
    }
  }
  return {};
}

/// Every known call passes a value in an order of its own.
OrderFound OrderSlice::of_parameter(const File& file, std::size_t scope, std::size_t index,
                                    int depth) {
  const Scope& function = file.scopes()[scope];
  const bool method =
      function.outer != kNone && file.scopes()[function.outer].kind == ScopeKind::kClass;
  const std::string& called =
      method && function.name == "__init__" ? file.scopes()[function.outer].name : function.name;
  const auto given_by = [&](const CallIn& call, const File& from) {
    const Node given = argument(call.call, function, index - (method ? 1 : 0), index);
    OrderFound found = given ? of(given, from, call.scope, depth + 1) : OrderFound{};
    add_order_step(found, call.call, from);
    return found;
  };
  OrderFound out;
  for (const File& from : files_.all()) {
    if (const CallIn* const one = call_on_stack(from, called)) {
      return given_by(*one, from);
    }
  }
  for (const File& from : files_.all()) {
    const auto [first, last] = from.facts->calls.equal_range(called);
    for (auto one = first; one != last; ++one) {
      out = given_by(one->second, from);
      if (out.order == OwnOrder::kFixed) {
        return {};
      }
    }
  }
  return out;
}

/// The call shown by the caller's frame.
const CallIn* OrderSlice::call_on_stack(const File& from, std::string_view called) const {
  const auto [first, last] = from.facts->calls.equal_range(called);
  for (const Frame& frame : callers_ == nullptr ? CallString() : *callers_) {
    for (auto one = first; one != last && frame.text == from.text; ++one) {
      const Node call = one->second.call;
      if (call.line() <= frame.line && frame.line <= call.last_line()) {
        return &one->second;
      }
    }
  }
  return nullptr;
}

/// `dist.broadcast_object_list(names)`: all ranks have the same order afterwards.
bool OrderSlice::is_agreed(const Definition& is) {
  const auto [first, last] = is.file->facts->arguments.equal_range(is.name);
  return std::any_of(first, last, [&](const auto& one) {
    const Node call = one.second.call;
    const std::string callee = dotted_name(call.field(Field::kFunction));
    const Definition called = files_.resolve(*is.file, one.second.scope, callee);
    const CallRow* row = called.kind == Definition::Kind::kLibrary
                             ? call_of_name(called.qualified)
                             : call_of_attribute(last_of(callee));
    const std::vector<Node> given = arguments_of(call);
    return row != nullptr && row->does == CallDoes::kAgrees && !given.empty() &&
           given.front().text() == is.name;
  });
}

}  // namespace ddpdoctor::program
