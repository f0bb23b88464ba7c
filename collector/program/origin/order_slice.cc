// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/order_slice.h"

#include <algorithm>

#include "collector/program/origin/iterable.h"

namespace ddpdoctor::program {
namespace {

constexpr int kDeepest = 12;
constexpr std::size_t kLongest = 100;  // characters of a line in the chain

/// The function returns the elements of its arguments in their order.
bool keeps_order(std::string_view function) {
  return is_one_of(function, {"list", "tuple", "iter", "enumerate", "zip", "reversed", "map",
                              "filter", "tqdm", "trange", "islice", "chain", "deque", "dict",
                              "fromkeys", "OrderedDict", "from_iterable"});
}

bool views_its_object(std::string_view method) {
  return is_one_of(method, {"items", "keys", "values", "copy"});
}

bool combines_sets(std::string_view method) {
  return is_one_of(method, {"union", "intersection", "difference", "symmetric_difference"});
}

OrderFound ends(OwnOrder order, Node node, const File& file) {
  OrderFound out{.order = order};
  add_order_step(out, node, file);
  return out;
}

/// Small integers are their own hashes: such a set has the same order on every rank.
bool is_of_numbers(Node node) {
  node = without_parentheses(node);
  if (node.is(NodeKind::kCall)) {
    return node.field(Field::kFunction).text() == "range";
  }
  const std::vector<Node> all = node.children();
  const bool container =
      node.is(NodeKind::kSet) || node.is(NodeKind::kList) || node.is(NodeKind::kTuple);
  return container && std::all_of(all.begin(), all.end(), [](Node one) {
           return one.is(NodeKind::kInteger) || one.is(NodeKind::kTrue);
         });
}

OrderFound of_set(Node node, const File& file) {
  if (is_of_numbers(node)) {
    return {};
  }
  for (const Node part : node.children()) {
    if (part.is(NodeKind::kForIn) && is_of_numbers(part.field(Field::kRight)) &&
        node.field(Field::kBody).is(NodeKind::kName)) {
      return {};
    }
  }
  return ends(OwnOrder::kSet, node, file);
}

bool calls_hash(Node node) {
  if (node.is(NodeKind::kCall) && is_one_of(node.field(Field::kFunction).text(), {"hash", "id"})) {
    return true;
  }
  const auto children = node.children();
  return std::any_of(children.begin(), children.end(), calls_hash);
}

OrderFound of_sorted(Node call, const File& file) {
  for (const Node one : arguments_of(call)) {
    if (!one.is(NodeKind::kKeywordArgument) || one.field(Field::kName).text() != "key") {
      continue;
    }
    const Node key = one.field(Field::kValue);
    if (is_one_of(key.text(), {"hash", "id"}) || calls_hash(key)) {
      return ends(OwnOrder::kHash, call, file);
    }
  }
  return {};
}

OwnOrder order_of_call(std::string_view qualified) {
  const OrderRow* row = order_of_name(qualified);
  return row == nullptr   ? OwnOrder::kFixed
         : row->is_random ? OwnOrder::kRandom
                          : OwnOrder::kDirectory;
}

/// The method that contains a scope, in the class `around`.
std::size_t method_around(std::span<const Scope> scopes, std::size_t scope, std::size_t around) {
  while (scope != kNone && scopes[scope].outer != around) {
    scope = scopes[scope].outer;
  }
  return scope;
}

}  // namespace

void add_order_step(OrderFound& found, Node node, const File& file) {
  const std::string path = file.path == nullptr ? std::string() : *file.path;
  const bool again = !found.chain.empty() && found.chain.front().line == node.line() &&
                     found.chain.front().file == path;
  if (found.order == OwnOrder::kFixed || again) {
    return;
  }
  std::string text = node.one_line();
  text.resize(std::min(text.size(), kLongest));
  found.chain.insert(found.chain.begin(),
                     {.file = path, .line = node.line(), .text = std::move(text)});
}

OrderFound OrderSlice::of(Node node, const File& file, std::size_t scope, int depth) {
  node = without_parentheses(node);
  if (!node || depth > kDeepest) {
    return {};
  }
  switch (node.kind()) {
    case NodeKind::kSet:
    case NodeKind::kSetComprehension:
      return of_set(node, file);
    case NodeKind::kListComprehension:
    case NodeKind::kGenerator:
    case NodeKind::kDictionaryComprehension:
      return of_comprehension(node, file, scope, depth);
    case NodeKind::kCall:
      return of_call(node, file, scope, depth);
    case NodeKind::kBinary:
      return of_binary(node, file, scope, depth);
    case NodeKind::kConditional: {
      const std::vector<Node> parts = node.children();
      return parts.empty() ? OrderFound{} : of(parts.front(), file, scope, depth + 1);
    }
    case NodeKind::kName:
    case NodeKind::kAttribute:
      return of_name(node, file, scope, depth);
    default:
      return {};
  }
}

OrderFound OrderSlice::of_comprehension(Node node, const File& file, std::size_t scope, int depth) {
  for (const Node part : node.children()) {
    if (!part.is(NodeKind::kForIn)) {
      continue;
    }
    OrderFound found = of(part.field(Field::kRight), file, scope, depth + 1);
    if (found.order != OwnOrder::kFixed) {
      add_order_step(found, node, file);
      return found;
    }
  }
  return {};
}

OrderFound OrderSlice::of_binary(Node node, const File& file, std::size_t scope, int depth) {
  const std::string_view sign = node.field(Field::kOperator).text();
  if (!is_one_of(sign, {"|", "&", "-", "^", "+"})) {
    return {};
  }
  for (const Field side : {Field::kLeft, Field::kRight}) {
    OrderFound found = of(node.field(side), file, scope, depth + 1);
    // A set difference is a set; for `a - b`, only `a` matters.
    if (found.order != OwnOrder::kFixed && !(sign == "-" && side == Field::kRight)) {
      return found;
    }
  }
  return {};
}

OrderFound OrderSlice::of_arguments(Node call, const File& file, std::size_t scope, int depth) {
  for (const Node one : arguments_of(call)) {
    OrderFound found = of(one.is(NodeKind::kKeywordArgument) ? one.field(Field::kValue) : one, file,
                          scope, depth + 1);
    if (found.order != OwnOrder::kFixed) {
      return found;
    }
  }
  return {};
}

/// `self.names()` in a method of the class that defines it.
Definition OrderSlice::own_method(Node callee, const File& file, std::size_t scope) const {
  const auto scopes = file.scopes();
  const std::size_t around = class_of(scopes, scope);
  const std::size_t function = around == kNone ? kNone : method_around(scopes, scope, around);
  if (function == kNone || !callee.is(NodeKind::kAttribute) ||
      scopes[function].parameters.empty() ||
      callee.field(Field::kObject).text() != scopes[function].parameters.front().name) {
    return {};
  }
  const auto [begin, end] =
      file.facts->functions.equal_range(callee.field(Field::kAttribute).text());
  for (auto one = begin; one != end; ++one) {
    if (scopes[one->second].outer == around) {
      return {.kind = Definition::Kind::kFunction, .file = &file, .scope = one->second};
    }
  }
  return {};
}

OrderFound OrderSlice::of_call(Node call, const File& file, std::size_t scope, int depth) {
  const Node callee = call.field(Field::kFunction);
  const std::string dotted = dotted_name(callee);
  const Definition is = files_.resolve(file, scope, dotted);
  const bool library = is.kind == Definition::Kind::kLibrary;
  if (is.kind == Definition::Kind::kFunction) {
    return of_returns(is, depth);
  }
  if (const Definition own = own_method(callee, file, scope);
      own.kind == Definition::Kind::kFunction) {
    return of_returns(own, depth);
  }
  if (const OwnOrder order = library ? order_of_call(is.qualified) : OwnOrder::kFixed;
      order != OwnOrder::kFixed) {
    return ends(order, call, file);
  }
  const std::vector<Node> given = arguments_of(call);
  const bool builtin = is.kind == Definition::Kind::kUnknown;
  if (builtin && (dotted == "set" || dotted == "frozenset")) {
    return !given.empty() && is_of_numbers(given.front()) ? OrderFound{}
                                                          : ends(OwnOrder::kSet, call, file);
  }
  if (builtin && dotted == "sorted") {
    return of_sorted(call, file);
  }
  if (callee.is(NodeKind::kAttribute) && !library) {
    bool known = false;
    OrderFound found = of_method(call, file, scope, depth, known);
    if (known) {
      return found;
    }
  }
  const std::string_view name =
      callee.is(NodeKind::kAttribute) ? callee.field(Field::kAttribute).text() : last_of(dotted);
  return keeps_order(name) ? of_arguments(call, file, scope, depth) : OrderFound{};
}

OrderFound OrderSlice::of_method(Node call, const File& file, std::size_t scope, int depth,
                                 bool& known) {
  const Node callee = call.field(Field::kFunction);
  const std::string_view name = callee.field(Field::kAttribute).text();
  const Node object = callee.field(Field::kObject);
  known = true;
  if (views_its_object(name)) {
    return of(object, file, scope, depth + 1);
  }
  if (combines_sets(name)) {
    return ends(OwnOrder::kSet, call, file);
  }
  if (lists_a_path(object, name, file, scope)) {
    return ends(OwnOrder::kDirectory, call, file);
  }
  known = false;
  return {};
}

bool OrderSlice::lists_a_path(Node object, std::string_view name, const File& file,
                              std::size_t scope) {
  if (!is_one_of(name, {"iterdir", "glob", "rglob"})) {
    return false;
  }
  Slicer slicer(files_, nullptr);
  const Definition owner = slicer.class_of_value(object, {.file = &file, .scope = scope});
  const bool of_path =
      owner.kind == Definition::Kind::kLibrary && lies_in(owner.qualified, "pathlib");
  return of_path || (name == "iterdir" && owner.kind == Definition::Kind::kUnknown) ||
         (name == "rglob" && owner.kind == Definition::Kind::kUnknown);
}

}  // namespace ddpdoctor::program
