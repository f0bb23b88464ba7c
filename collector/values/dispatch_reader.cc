// SPDX-License-Identifier: Apache-2.0
#include "collector/values/dispatch_reader.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/stacks/python/addresses.h"
#include "collector/stacks/python/object_flags.h"
#include "collector/stacks/python/value_layout.h"
#include "collector/values/from_syntax.h"

namespace ddpdoctor::values {

namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;
using program::Field;
using program::Node;
using program::NodeKind;
using Kind = Value::Kind;

constexpr std::size_t kMostDispatched = 48;  // in one function
constexpr std::size_t kMostElements = 64;    // in a list of callbacks
constexpr std::size_t kMostShown = 6;
constexpr int kDeepestDispatch = 3;  // partials of partials
using stacks::kTypeSubclass;

/// The name that an expression begins with; no node if it does not begin with a name.
Node root_node(Node node) {
  node = program::without_parentheses(node);
  while (node.is(NodeKind::kAttribute) || node.is(NodeKind::kSubscript) ||
         node.is(NodeKind::kCall)) {
    const Field inner = node.is(NodeKind::kAttribute)   ? Field::kObject
                        : node.is(NodeKind::kSubscript) ? Field::kValue
                                                        : Field::kFunction;
    node = program::without_parentheses(node.field(inner));
  }
  return node.is(NodeKind::kName) ? node : Node();
}

/// The position of the name in the loop's target; 0 if the name is the whole target.
std::optional<std::size_t> part_of(Node target, std::string_view name) {
  if (target.is(NodeKind::kName)) {
    return target.text() == name ? std::optional<std::size_t>(0) : std::nullopt;
  }
  const auto parts = target.children();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].is(NodeKind::kName) && parts[i].text() == name) {
      return i;
    }
  }
  return std::nullopt;
}

/// The loop around a call whose target is the name that the callee begins with.
Node loop_of(Node call, Node root, Node function) {
  for (Node outer = call.parent(); root && outer && outer != function; outer = outer.parent()) {
    if (outer.is(NodeKind::kFor) && part_of(outer.field(Field::kLeft), root.text()) &&
        outer.field(Field::kBody).holds(call)) {
      return outer;
    }
  }
  return {};
}

/// "[Log.after, Save.after]".
std::string shown(const std::vector<model::CallSite>& functions) {
  std::string out;
  for (std::size_t i = 0; i < functions.size() && i < kMostShown; ++i) {
    out += (i == 0 ? "" : ", ") + functions[i].function;
  }
  return functions.size() > kMostShown ? fmt::format("[{}, … {} in all]", out, functions.size())
                                       : "[" + out + "]";
}

}  // namespace

/// By the object that is called: the function behind a method, a partial, an object with a
/// __call__; a class by its own name. Empty where that is not known.
model::CallSite DispatchReader::reached(const Value& value, int depth) {
  namespace layout = stacks::value_layout;
  if (depth > kDeepestDispatch || (value.kind != Kind::kMethod && value.kind != Kind::kObject)) {
    return {};
  }
  if (value.kind == Kind::kMethod) {
    return evaluator_.reached_function(value.address);
  }
  const std::string type = objects_.type_name(value.address);
  if (type == "function") {
    return evaluator_.reached_function(value.address);
  }
  if (type == "method" || type == "functools.partial") {
    const Value inner = evaluator_.load(
        stacks::pointer(objects_.memory(), stacks::at(value.address, layout::kFirstField)));
    return reached(inner, depth + 1);
  }
  if ((objects_.type_flags(value.address) & kTypeSubclass) != 0) {
    return {.file = {}, .line = 0, .function = base::printable(objects_.class_name(value.address))};
  }
  // Calling a torch.nn.Module runs its forward().
  for (const std::string_view method : {"forward", "__call__"}) {
    const bool module = method == "forward";
    const RemoteAddress own = objects_.type_of(value.address);
    if (module && !evaluator_.attributes().derives_from(own, "torch.nn.modules.module", "Module")) {
      continue;
    }
    if (const auto found = evaluator_.attributes().in_class(own, method)) {
      return evaluator_.reached_function(*found);
    }
  }
  return {};
}

/// The values, in order, that a loop assigns to one part of its target.
std::optional<std::vector<Value>> DispatchReader::elements(const Expression& iterable, Names& names,
                                                           std::size_t part) {
  const bool call = iterable.kind == Expression::Kind::kCall && !iterable.parts.empty();
  if (!call) {
    return part == 0 ? evaluator_.elements(evaluator_.evaluate(iterable, names), kMostElements)
                     : std::nullopt;
  }
  const Value callee = evaluator_.evaluate(iterable.parts[0], names);
  if (callee.kind == Kind::kBuiltinMethod && iterable.parts.size() == 1) {
    const bool values = callee.text == "values" || (callee.text == "items" && part == 1);
    return values ? evaluator_.values_of_dict(callee.items[0], kMostElements) : std::nullopt;
  }
  const std::string name = callee.kind == Kind::kObject && callee.address != 0 &&
                                   objects_.type_name(callee.address) == "type"
                               ? objects_.class_name(callee.address)
                               : std::string();
  const bool numbers = name == "enumerate" && part == 1;
  const bool same = (name == "list" || name == "tuple") && part == 0;
  return iterable.parts.size() >= 2 && (numbers || same) ? elements(iterable.parts[1], names, 0)
                                                         : std::nullopt;
}

/// Nothing where one of the functions is not known.
std::optional<std::vector<model::CallSite>> DispatchReader::in_loop(const In& in, Node callee,
                                                                    Node loop) {
  const Node root = root_node(callee);
  const auto part = part_of(loop.field(Field::kLeft), root.text());
  const auto all = elements(expression_of(loop.field(Field::kRight)), in.names, part.value_or(0));
  const Expression expression = expression_of(callee);
  if (!all) {
    return std::nullopt;
  }
  std::vector<model::CallSite> out;
  for (const Value& one : *all) {
    Names inside = in.names;
    inside.bound.insert_or_assign(std::string(root.text()), one);
    out.push_back(reached(evaluator_.evaluate(expression, inside)));
    if (out.back().function.empty()) {
      return std::nullopt;
    }
  }
  return out;
}

void DispatchReader::add(const In& in, Node call) {
  const Node callee = program::without_parentheses(call.field(Field::kFunction));
  const Node loop = loop_of(call, root_node(callee), in.function.node);
  const Node asked = loop ? loop.field(Field::kRight) : callee;
  const Node owner = loop ? loop : call;
  Since since = in.freshly(asked, owner);
  if (since.freshness == Freshness::kNotReached) {
    return;
  }
  const model::CallSite one =
      loop ? model::CallSite{} : reached(evaluator_.evaluate(expression_of(callee), in.names));
  auto each = loop ? in_loop(in, callee, loop) : std::nullopt;
  const std::string text = loop            ? (each ? shown(*each) : std::string())
                           : one.line == 0 ? one.function
                                           : fmt::format("{} ({}:{})", one.function,
                                                         base::file_name(one.file), one.line);
  if (text.empty()) {
    return;
  }
  if (since.freshness == Freshness::kFresh && in.read_freshly) {
    static_cast<void>(evaluator_.evaluate(expression_of(asked), in.names));  // notes what it reads
    since = in.read_freshly(asked, owner, evaluator_.read());
  }
  SeenValue seen = DecisionReader::made(ValueRole::kCallee, in.where, call.line(),
                                        call.field(Field::kFunction).one_line());
  seen.value = text;
  seen.reached = one;
  seen.each = std::move(each).value_or(std::vector<model::CallSite>());
  seen.state = since.freshness == Freshness::kStale ? ValueState::kStale : ValueState::kKnown;
  seen.reason = since.reason;
  out_.push_back(std::move(seen));
}

void DispatchReader::read(const In& in) {
  std::vector<Node> calls =
      program::calls_within(in.function.body ? in.function.body : in.function.node);
  std::stable_sort(calls.begin(), calls.end(), [&in](Node a, Node b) {
    return std::abs(a.line() - in.where.at) < std::abs(b.line() - in.where.at);
  });
  calls.resize(std::min(calls.size(), kMostDispatched));
  for (const Node call : calls) {
    if (evaluator_.late()) {
      return;
    }
    add(in, call);
  }
}

}  // namespace ddpdoctor::values
