// SPDX-License-Identifier: Apache-2.0
// The origin of a call's result: of a builtin, a library row, or a user's function.
#include <algorithm>
#include <array>

#include "collector/program/origin/iterable.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

bool is_builtin(std::string_view name) {
  return is_one_of(
      name,
      {"int",        "str",     "float",    "bool",     "min",   "max",       "abs",    "sorted",
       "list",       "tuple",   "dict",     "set",      "range", "enumerate", "zip",    "any",
       "all",        "sum",     "reversed", "round",    "map",   "filter",    "iter",   "frozenset",
       "isinstance", "hasattr", "getattr",  "callable", "type",  "repr",      "divmod", "pow",
       "issubclass", "format",  "ord",      "chr",      "bytes", "hash",      "id"});
}

bool is_super(Node object) {
  return object.is(NodeKind::kCall) && object.field(Field::kFunction).text() == "super";
}

/// `held.get(key)`, `held.pop(key, None)`: the result is None if nothing is held under the key.
Node key_looked_up(Node call) {
  const std::string_view name = call.field(Field::kFunction).field(Field::kAttribute).text();
  const std::vector<Node> given = call.field(Field::kArguments).children();
  const bool or_none = given.size() == 2 && given[1].is(NodeKind::kNone);
  const bool looks_up = (name == "get" && given.size() == 1) || or_none;
  return looks_up && (name == "get" || name == "pop") ? given[0] : Node();
}

/// A value that can be more functions than this is not followed.
constexpr int kMostFunctions = 6;

/// Modules whose functions return what follows from their arguments.
bool computes(std::string_view qualified) {
  constexpr auto kModules =
      std::to_array<std::string_view>({"torch", "numpy", "math", "operator", "builtins", "copy",
                                       "functools", "itertools", "statistics", "collections"});
  return std::any_of(kModules.begin(), kModules.end(),
                     [qualified](std::string_view module) { return lies_in(qualified, module); });
}

}  // namespace

Origin Slicer::arguments(Node call, const Where& where) {
  Origin out = joined(arguments_of(call), where);
  out.none = nullptr;  // the result is None for reasons of its own
  return out;
}

Origin Slicer::call(Node node, const Where& where) {
  const Node callee = node.field(Field::kFunction);
  const std::string dotted = dotted_name(callee);
  const Definition is =
      dotted.empty() ? Definition{} : files_.resolve(*where.file, where.scope, dotted);
  Origin out;
  bool known = false;
  switch (is.kind) {
    case Definition::Kind::kFunction:
      out = entered(*is.file, is.scope, node, where);
      known = true;
      break;
    case Definition::Kind::kClass: {
      Origin made = of(Source::kUniform);  // a new object, the same on every rank
      made.object = true;
      return made;
    }
    case Definition::Kind::kLibrary:
      out = library_call(is.qualified, node, where);
      known = true;
      break;
    case Definition::Kind::kVariable:
    case Definition::Kind::kModule:
    case Definition::Kind::kUnknown:
      break;
  }
  if (!known && callee.is(NodeKind::kName) && is.kind == Definition::Kind::kUnknown) {
    out = builtin(callee.text(), node, where, known);
    if (!known) {
      if (const SourceRow* row = source_of_attribute(callee.text())) {
        out = of_row(*row, true);  // from a star import
      } else {
        out = unknown(callee.text());
      }
      known = true;
    }
  }
  if (!known) {
    out = callee.is(NodeKind::kAttribute) ? method_call(node, where) : value_call(node, where);
  }
  if (const Node key = callee.is(NodeKind::kAttribute) ? key_looked_up(node) : Node()) {
    Origin of_key = evaluate(key, where);
    if (is_own(of_key.source)) {
      add_step(of_key, *where.file, node);
      out.none = std::make_shared<const Origin>(std::move(of_key));
    }
  }
  if (out.source != Source::kUniform) {
    add_step(out, *where.file, node);
  }
  return out;
}

Origin Slicer::builtin(std::string_view name, Node node, const Where& where, bool& known) {
  known = true;
  const std::vector<Node> given = arguments_of(node);
  if (name == "next" || name == "anext" || name == "input") {
    return of(Source::kData);
  }
  if (name == "open") {
    return of(Source::kFiles);
  }
  if (name == "super") {
    return of(Source::kUniform);
  }
  if (name == "len") {
    Origin out = arguments(node, where);
    out.number = false;
    out.object = false;
    const bool has_items = out.source == Source::kData || out.source == Source::kRandom;
    out.source = has_items ? Source::kLength : out.source;
    return out;
  }
  if (name == "getattr" && given.size() >= 2 && !string_text(given[1]).empty()) {
    bool found = false;
    const std::string_view attribute = string_text(given[1]);
    Origin out = any_member(attribute, where, found);
    if (found) {
      return out;
    }
    if (const SourceRow* row = source_of_attribute(attribute)) {
      return of_row(*row, true);
    }
    return stronger(evaluate(given[0], where), unknown(attribute));
  }
  if (name == "getattr" && given.size() >= 2) {
    if (auto out = function_by_name(given[0], given[1], where)) {
      return std::move(*out);
    }
  }
  if (is_builtin(name)) {
    Origin out = arguments(node, where);
    if (name == "map" || name == "filter") {
      out = invoked(std::move(out), {}, where);
    }
    for (const Node argument : given) {  // `sorted(names, key=lambda n: load[n])`
      if (argument.is(NodeKind::kKeywordArgument) && argument.field(Field::kName).text() == "key") {
        out = stronger(std::move(out),
                       invoked(evaluate(argument.field(Field::kValue), where), {}, where));
      }
    }
    out.number = out.number && name == "int";
    return out;
  }
  known = false;
  return {};
}

Origin Slicer::library_call(const std::string& qualified, Node node, const Where& where) {
  const std::vector<Node> given = arguments_of(node);
  if ((qualified == "os.environ.get" || qualified == "os.getenv") && !given.empty()) {
    Origin out = environment(given.front(), node, where);
    if (given.size() > 1) {
      Origin otherwise = evaluate(given[1], where);
      if (out.source != Source::kRank) {
        out = stronger(std::move(out), std::move(otherwise));
      }
    }
    return out;
  }
  const SourceRow* row = source_of_name(qualified);
  const std::size_t dot = qualified.rfind('.');
  if (row == nullptr && dot != std::string::npos) {
    row = source_of_member(qualified.substr(0, dot), qualified.substr(dot + 1));
  }
  if (row != nullptr) {
    return of_row(*row);
  }
  const CallRow* makes = call_of_name(qualified);
  if (makes != nullptr && makes->does == CallDoes::kAgrees) {
    return of(Source::kUniform);
  }
  Origin out = arguments(node, where);
  for (Callable& one : out.callables) {
    one.partly_called = true;
  }
  out.number = false;
  out.like_an_option = false;
  if (out.source == Source::kUnknown && lies_in(qualified, "torch")) {
    out.source = Source::kData;  // computed from the rank's tensors
  }
  if (out.source == Source::kUniform && !computes(qualified)) {
    // A constructor call, or a function without a row.
    const std::string_view last = last_of(qualified);
    const bool makes_object = !last.empty() && last.front() >= 'A' && last.front() <= 'Z';
    out.object = makes_object;
    return makes_object ? out : unknown(qualified);
  }
  return out;
}

Origin Slicer::method_call(Node node, const Where& where) {
  const Node callee = node.field(Field::kFunction);
  const Node object = callee.field(Field::kObject);
  const std::string_view name = callee.field(Field::kAttribute).text();
  const bool of_super = is_super(object);
  const std::size_t around = of_super ? class_of(where.file->scopes(), where.scope) : kNone;
  const Definition owner =
      around == kNone
          ? class_of_value(object, where)
          : Definition{.kind = Definition::Kind::kClass, .file = where.file, .scope = around};
  std::vector<Definition> classes =
      owner.kind == Definition::Kind::kUnknown ? std::vector<Definition>() : files_.bases_of(owner);
  if (around != kNone) {
    classes.erase(classes.begin());
  }
  bool of_library = false;
  for (const Definition& one : classes) {
    if (one.kind == Definition::Kind::kLibrary) {
      of_library = true;
      if (const SourceRow* row = source_of_member(one.qualified, name)) {
        // The value of an Event depends on who sets it.
        return row->owner == "Event" ? stronger(of_row(*row), raised(object)) : of_row(*row);
      }
      const CallRow* makes = call_of_member(one.qualified, name);
      if (makes != nullptr && makes->does == CallDoes::kAgrees) {
        return of(Source::kUniform);
      }
      continue;
    }
    const auto [begin, end] = one.file->facts->functions.equal_range(name);
    for (auto method = begin; method != end; ++method) {
      if (one.file->scopes()[method->second].outer == one.scope) {
        return entered(*one.file, method->second, node, where);
      }
    }
  }
  if (around != kNone && of_library) {
    // What the library's method returns is in no known file, least of all in the overriding method.
    Origin out = arguments(node, where);
    out.number = false;
    return out.source == Source::kUniform ? unknown(callee.text()) : out;
  }
  if (owner.kind == Definition::Kind::kClass) {
    if (Origin held = evaluate(callee, where); !held.callables.empty()) {
      return invoked(std::move(held), node, where);
    }
    bool is_set = false;
    Origin field = member(owner, name, callee, where, is_set);
    if (is_set && (field.source == Source::kUnknown || is_own(field.source))) {
      Origin given = arguments(node, where);  // a function of the object that no file shows
      given.number = false;
      given.object = false;
      return stronger(std::move(field), std::move(given));
    }
  }
  Origin out;
  int functions = 0;
  for (const File& file : files_.all()) {
    const auto [begin, end] = file.facts->functions.equal_range(name);
    for (auto method = begin; method != end && functions < kMostFunctions; ++method) {
      const std::size_t outer = file.scopes()[method->second].outer;
      if (outer != kNone && file.scopes()[outer].kind == ScopeKind::kClass) {
        ++functions;
        out = stronger(std::move(out), entered(file, method->second, node, where));
      }
    }
  }
  if (functions > 0) {
    return out;
  }
  const SourceRow* row = source_of_attribute(name);
  if (row != nullptr && !is_own(row->source)) {
    return of_row(*row, true);
  }
  if (Origin held = evaluate(callee, where); !held.callables.empty()) {
    return invoked(std::move(held), node, where);
  }
  const CallRow* makes = call_of_attribute(name);
  if (makes != nullptr && makes->does == CallDoes::kAgrees) {
    return of(Source::kUniform);
  }
  Origin of_object = evaluate(object, where);
  of_object.number = false;
  of_object.object = of_object.object && !gives_elements(name);
  of_object.like_an_option = false;
  if (row != nullptr && of_object.source >= Source::kUnknown) {
    return of_row(*row, true);  // a tensor's content, unless the ranks have agreed on it
  }
  if (of_object.source == Source::kUnknown || is_own(of_object.source)) {
    return of_object;
  }
  Origin given = arguments(node, where);
  given.number = false;
  given.object = false;
  return stronger(std::move(of_object), std::move(given));
}

/// A call of a name, item or result: enters the functions it can be, or the object's __call__.
Origin Slicer::value_call(Node node, const Where& where) {
  const Node callee = node.field(Field::kFunction);
  const Definition owner = class_of_value(callee, where);
  if (owner.kind == Definition::Kind::kClass) {
    const auto [begin, end] = owner.file->facts->functions.equal_range("__call__");
    for (auto method = begin; method != end; ++method) {
      if (owner.file->scopes()[method->second].outer == owner.scope) {
        return entered(*owner.file, method->second, node, where);
      }
    }
  }
  Origin held = evaluate(callee, where);
  return held.callables.empty() ? stronger(std::move(held), unknown({}))
                                : invoked(std::move(held), node, where);
}

/// The origin of a function's return values and of the decisions that lead to each return.
Origin Slicer::entered(const File& file, std::size_t scope, Node call, const Where& where) {
  const Key key{&file, scope, "()"};
  if (open_.contains(key)) {
    return of(Source::kUniform);
  }
  const Scope& function = file.scopes()[scope];
  if (!enter(key)) {
    return unknown(function.name);
  }
  const Activation activation{.call = call, .scope = scope, .file = &file, .caller = where};
  Where inside{.file = &file,
               .scope = scope,
               .statement = kNone,
               .activation = call ? &activation : nullptr,
               .depth = where.depth};
  Origin out;
  bool returns = false;
  if (function.kind == ScopeKind::kLambda) {
    out = evaluate(function.body, inside);
    returns = true;
  }
  if (function.is_generator) {
    out = unknown(function.name);
  }
  for (const std::size_t at : file.facts->index->statements_of(function)) {
    const Node statement = file.facts->index->statements()[at].node;
    if (!statement.is(NodeKind::kReturn)) {
      continue;
    }
    returns = true;
    inside.statement = at;
    const Node value = statement.first_child();
    Origin one = value ? evaluate(value, inside) : of(Source::kUniform);
    Origin guard = guards(file, scope, at,
                          {.file = &file,
                           .scope = scope,
                           .statement = kNone,
                           .activation = inside.activation,
                           .depth = where.depth});
    const bool flag = !value || is_flag(value);
    if ((!value || value.is(NodeKind::kNone)) &&
        (is_own(guard.source) || guard.source == Source::kRank)) {
      Origin decides = guard;
      add_step(decides, file, statement);
      one.none = std::make_shared<const Origin>(std::move(decides));
    }
    if (guard.source == Source::kException && !flag) {
      guard = of(Source::kData);  // a fallback value, not the fact that it failed
    }
    if (guard.source == Source::kRank && !flag && !is_choice(one) && one.source != Source::kRank) {
      one = stronger(std::move(one), of(Source::kData));
    } else if (guard.source != Source::kUniform) {
      one = stronger(std::move(one), guard);
    }
    if (one.source != Source::kUniform) {
      add_step(one, file, statement);
    }
    out = stronger(std::move(out), std::move(one));
  }
  leave(key);
  return returns || function.is_generator ? out : of(Source::kUniform);
}

}  // namespace ddpdoctor::program
