// SPDX-License-Identifier: Apache-2.0
// The origin of a name or attribute: its bindings in any file.
#include <algorithm>

#include "collector/program/origin/iterable.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

constexpr int kMostBindingsOfAName = 40;  // bindings of one name

/// `x.append(y)`: a method with which a Python container stores its argument.
bool takes_name_in(std::string_view method) {
  return is_one_of(method, {"append", "appendleft", "add", "extend", "insert", "update", "put",
                            "setdefault", "put_nowait"});
}

/// `x.zero_()`: torch's names for methods that write into their tensor.
bool writes_in_place(std::string_view method) {
  return method.ends_with('_') && !method.ends_with("__");
}

/// A value stored once in a container is a choice; values stored in each iteration are data.
bool is_in_loop(Node node, Node scope) {
  for (Node at = node.parent(); at && at != scope && at.parent() != at; at = at.parent()) {
    if (at.is(NodeKind::kFor) || at.is(NodeKind::kWhile)) {
      return true;
    }
  }
  return false;
}

/// "i" of `for i, x in enumerate(…)`.
bool is_first_target(Node target) {
  const Node list = target.parent();
  const bool unpacks = list.is(NodeKind::kPatternList) || list.is(NodeKind::kTuplePattern) ||
                       list.is(NodeKind::kTuple);
  return unpacks && list.first_child() == target;
}

/// `self.raised = True`, or a global: later calls read it, too.
bool outlives_the_call(const Binding& binding, const File& file, std::size_t scope) {
  const auto [first, last] = file.facts->globals.equal_range(binding.target);
  return binding.target.find('.') != std::string::npos ||
         std::any_of(first, last, [scope](const auto& one) { return one.second == scope; });
}

}  // namespace

Where where_of(const File& file, Node node) {
  const std::size_t statement = file.facts->index->statement_of(node);
  return {.file = &file,
          .scope = statement == kNone ? 0 : file.facts->index->statements()[statement].scope,
          .statement = statement};
}

Where inside(const File& file, std::size_t scope, std::size_t statement, const Where& where) {
  Where out = where;
  out.file = &file;
  out.scope = scope;
  out.statement = statement;
  return out;
}

Node bound_in_comprehension(Node name) {
  for (Node at = name.parent(); at; at = at.parent()) {
    switch (at.kind()) {
      case NodeKind::kListComprehension:
      case NodeKind::kSetComprehension:
      case NodeKind::kDictionaryComprehension:
      case NodeKind::kGenerator:
        for (const Node part : at.children()) {
          if (!part.is(NodeKind::kForIn) || part.field(Field::kRight).holds(name)) {
            continue;
          }
          const Node left = part.field(Field::kLeft);
          std::vector<Node> open{left};
          while (!open.empty()) {
            const Node one = open.back();
            open.pop_back();
            if (one.is(NodeKind::kName) && one.text() == name.text()) {
              return part;
            }
            for (const Node child : one.children()) {
              open.push_back(child);
            }
          }
        }
        break;
      case NodeKind::kBlock:
      case NodeKind::kModule:
        return {};
      default:
        break;
    }
    if (at.parent() == at) {
      break;
    }
  }
  return {};
}

Origin Slicer::name(Node node, const Where& where) {
  const std::string_view spelled = node.text();
  if (const Node part = bound_in_comprehension(node)) {
    Origin out = evaluate(part.field(Field::kRight), where);
    out.number = false;
    return out;
  }
  if (is_one_of(spelled, {"__name__", "__debug__", "__file__", "__doc__"})) {
    return of(Source::kUniform);
  }
  return defined(files_.lookup(*where.file, where.scope, spelled), where, spelled, node);
}

Origin Slicer::defined(const Definition& definition, const Where& where, std::string_view spelled,
                       Node at) {
  switch (definition.kind) {
    case Definition::Kind::kVariable: {
      Origin out = variable(*definition.file, definition.scope, definition.name, where);
      if (out.source != Source::kUniform) {
        add_step(out, *where.file, at);
      }
      return out;
    }
    case Definition::Kind::kFunction:
      return of_function(*definition.file, definition.scope);
    case Definition::Kind::kClass:
    case Definition::Kind::kModule: {
      Origin out = of(Source::kUniform);  // its presence is the same on every rank
      out.object = true;
      return out;
    }
    case Definition::Kind::kLibrary: {
      if (const SourceRow* row = source_of_name(definition.qualified)) {
        return of_row(*row);
      }
      return of(Source::kUniform);  // a constant, a class, a function of a library
    }
    case Definition::Kind::kUnknown:
      break;
  }
  return unknown(spelled);
}

Origin Slicer::variable(const File& file, std::size_t scope, std::string_view name,
                        const Where& where) {
  const Key key{&file, scope, std::string(name)};
  const Scope& around = file.scopes()[scope];
  if (open_.contains(key)) {
    return of(Source::kUniform);  // already followed where it was reached first
  }
  if (!enter(key)) {
    return unknown(name);
  }
  Origin out = of(Source::kUniform);
  int bindings = 0;
  const auto add = [&](const Binding& one, std::size_t in) {
    const bool counts = one.target == name && one.kind != BindingKind::kImport &&
                        one.kind != BindingKind::kDefine && one.kind != BindingKind::kDelete;
    if (counts && ++bindings <= kMostBindingsOfAName) {
      out = stronger(std::move(out), bound(one, file, in, where));
    }
  };
  for (const Binding& one : file.facts->of_scope[scope]) {
    add(one, scope);
  }
  if (scope == 0) {
    const auto [first, last] = file.facts->globals.equal_range(name);
    for (auto in = first; in != last; ++in) {
      for (const Binding& one : file.facts->of_scope[in->second]) {
        add(one, in->second);
      }
    }
  }
  // nonlocal: inner functions may bind the name, too.
  for (std::size_t i = scope + 1; scope != 0 && i < file.scopes().size(); ++i) {
    if (file.scopes()[i].outer != scope || file.scopes()[i].kind != ScopeKind::kFunction) {
      continue;
    }
    for (const std::size_t at : file.facts->index->statements_of(file.scopes()[i])) {
      const Node statement = file.facts->index->statements()[at].node;
      const auto names = statement.children();
      const bool declares =
          statement.is(NodeKind::kNonlocal) &&
          std::any_of(names.begin(), names.end(), [&](Node one) { return one.text() == name; });
      for (const Binding& one : declares ? file.facts->of_scope[i] : std::vector<Binding>()) {
        add(one, i);
      }
    }
  }
  const bool is_parameter = std::any_of(around.parameters.begin(), around.parameters.end(),
                                        [name](const Parameter& one) { return one.name == name; });
  if (is_parameter) {
    out = stronger(std::move(out), parameter(file, scope, name, where));
  }
  const bool own_scope = file.text == where.file->text && scope == where.scope;
  if (is_own(out.source) && own_scope && agreed(file, scope, name, where)) {
    out = of(Source::kUniform);
  }
  leave(key);
  return out;
}

Origin Slicer::bound(const Binding& binding, const File& file, std::size_t scope,
                     const Where& where) {
  const Where there = inside(file, scope, binding.statement, where);
  Origin out = of(Source::kUniform);
  bool flag = false;
  switch (binding.kind) {
    case BindingKind::kFor:
      return iterated(binding, there);
    case BindingKind::kExcept:
      out = of(Source::kException);
      break;
    case BindingKind::kMethod: {
      const std::string_view method =
          binding.node.field(Field::kFunction).field(Field::kAttribute).text();
      if (!takes_name_in(method) && !writes_in_place(method)) {
        return out;
      }
      out = arguments(binding.node, there);
      out.source = out.source == Source::kRank ? Source::kData : out.source;
      flag = !is_in_loop(binding.node, file.scopes()[scope].node);
      break;
    }
    case BindingKind::kAssign:
    case BindingKind::kAugmented:
    case BindingKind::kNamed:
    case BindingKind::kWith:
    case BindingKind::kCapture:
      if (!binding.value && binding.kind == BindingKind::kAssign) {
        return out;  // only an annotation: `lead: bool`
      }
      out = evaluate(binding.value, there);
      flag = is_flag(binding.value);
      break;
    case BindingKind::kImport:
    case BindingKind::kDefine:
    case BindingKind::kDelete:
      return out;
  }
  if (binding.unpacked) {
    out.number = false;
  }
  const bool derived = out.source == Source::kRank && out.number;
  Origin guard = guards(file, scope, binding.statement, where);
  if (guard.source == Source::kRank && !flag && !is_choice(out)) {
    // `if rank == 1: batch = []` makes data that differ.
    guard.source = out.source == Source::kUniform && !derived ? Source::kRank : Source::kData;
    const bool makes_data = binding.kind == BindingKind::kMethod ||
                            (binding.kind == BindingKind::kAssign && !is_flag(binding.value));
    guard.source = makes_data ? Source::kData : guard.source;
  }
  if (guard.source != Source::kUniform) {
    out = stronger(std::move(out), std::move(guard));
  }
  if (Origin when = run_when(file, scope); when.source != Source::kUniform) {
    out = stronger(std::move(out), std::move(when));
  }
  if (flag && out.source == Source::kUniform && outlives_the_call(binding, file, scope)) {
    out = stronger(std::move(out), called_when(file, scope));
  }
  if (out.source != Source::kUniform) {
    add_step(out, file, binding.node);
  }
  return out;
}

Origin Slicer::iterated(const Binding& binding, const Where& where) {
  const Node over = without_parentheses(binding.value);
  const Node callee = over.is(NodeKind::kCall) ? over.field(Field::kFunction) : Node();
  const bool counts = callee.is(NodeKind::kName) && callee.text() == "enumerate";
  if (counts && is_first_target(binding.node)) {
    return of(Source::kUniform);
  }
  auto items = over.is(NodeKind::kCall) ? yielded(over, where) : std::nullopt;
  Origin out = items ? std::move(*items) : evaluate(over, where);
  const bool range = callee.is(NodeKind::kName) && callee.text() == "range";
  if (range && out.source != Source::kRank) {
    // An iteration number is equal on all ranks, whatever the number of iterations.
    return of(Source::kUniform);
  }
  out.number = false;
  if (out.source == Source::kLength) {
    out.source = Source::kData;
  }
  if (out.source != Source::kUniform) {
    add_step(out, *where.file, binding.node);
  }
  return out;
}

}  // namespace ddpdoctor::program
