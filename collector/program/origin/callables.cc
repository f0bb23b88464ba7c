// SPDX-License-Identifier: Apache-2.0
// Functions as values: in attributes, tables, parameters, conditionals, lambdas, partial(…). They
// are followed like all values; a call of such a value enters every function it can be.
#include <algorithm>
#include <string_view>
#include <vector>

#include "collector/program/origin/callees.h"
#include "collector/program/origin/passing.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

/// Functions that a computed name can mean; of more, the value shows none.
constexpr std::size_t kMostByName = 6;

/// `f"on_{event}"` can be "on_start": its plain parts begin and end the name.
bool can_be(Node text, std::string_view name) {
  text = without_parentheses(text);
  const auto parts = text.is(NodeKind::kString) ? text.children() : std::vector<Node>{};
  std::string_view before;
  std::string_view after;
  bool computed = false;
  for (const Node part : parts) {
    computed = computed || part.is(NodeKind::kInterpolation);
    if (part.is(NodeKind::kInterpolation)) {
      after = {};
    } else if (part.is(NodeKind::kStringContent)) {
      (computed ? after : before) = part.text();
    }
  }
  return name.size() >= before.size() + after.size() && name.starts_with(before) &&
         name.ends_with(after);
}

/// The text that a name stands for in this call of the function: an argument that is a literal.
std::string_view text_passed(Node name, const Where& where) {
  constexpr int kDeepest = 4;
  Node node = without_parentheses(name);
  Where at = where;
  for (int depth = 0; depth < kDeepest && node && node.is(NodeKind::kName); ++depth) {
    const Activation* const by = at.activation;
    if (by == nullptr || by->scope != at.scope || by->file->text != at.file->text || !by->call) {
      return {};
    }
    const Scope& function = by->file->scopes()[by->scope];
    const std::size_t index = number_of(function, node.text());
    node = index == kNoParameter
               ? Node()
               : argument_for(by->call, function, index, is_method(*by->file, by->scope) ? 1 : 0);
    at = by->caller;
  }
  return node ? string_text(node) : std::string_view();
}

}  // namespace

Origin of_function(const File& file, std::size_t scope) {
  Origin out = of(Source::kUniform);  // its presence is the same on every rank
  out.object = true;
  out.callables.push_back({.file = &file, .scope = scope});
  return out;
}

Origin Slicer::lambda(Node node, const Where& where) {
  const auto scopes = where.file->scopes();
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    if (scopes[i].kind == ScopeKind::kLambda && scopes[i].node == node) {
      return of_function(*where.file, i);
    }
  }
  Origin out = evaluate(node.field(Field::kBody), where);  // the origin of the condition itself
  out.object = true;
  return out;
}

std::optional<Origin> Slicer::function_by_name(Node object, Node name, const Where& where) {
  const std::string dotted = dotted_name(object);
  Definition owner =
      dotted.empty() ? Definition{} : files_.resolve(*where.file, where.scope, dotted);
  if (owner.kind != Definition::Kind::kClass && owner.kind != Definition::Kind::kModule) {
    owner = class_of_value(object, where);
  }
  std::vector<Definition> owners;
  if (owner.kind == Definition::Kind::kModule) {
    owners.push_back(owner);
  } else if (owner.kind == Definition::Kind::kClass) {
    owners = files_.bases_of(owner);
  }
  Origin out = of(Source::kUniform);
  std::size_t functions = 0;
  // `getattr(module, hook)`, where a call passed "on_batch_start".
  const std::string_view hook = text_passed(name, where);
  for (const Definition& one : owners) {
    if (one.file == nullptr) {
      continue;
    }
    const std::size_t around = one.kind == Definition::Kind::kModule ? 0 : one.scope;
    for (const auto& [function, scope] : one.file->facts->functions) {
      if (one.file->scopes()[scope].outer == around && !function.starts_with("__") &&
          (hook.empty() ? can_be(name, function) : function == hook)) {
        ++functions;
        out = stronger(std::move(out), of_function(*one.file, scope));
      }
    }
  }
  if (functions == 0 && !hook.empty()) {  // of a class that is not known
    for (const Callee& one : methods_named(hook, files_)) {
      ++functions;
      out = stronger(std::move(out), of_function(*one.file, one.scope));
    }
  }
  if (functions == 0 || functions > kMostByName) {
    return std::nullopt;
  }
  Origin chosen = hook.empty() ? evaluate(name, where) : of(Source::kUniform);
  if (chosen.source != Source::kUniform) {
    add_choice(chosen, *where.file, name);
  }
  return stronger(std::move(out), std::move(chosen));
}

Origin Slicer::invoked(Origin callee, Node call, const Where& where) {
  const std::vector<Callable> callables = std::move(callee.callables);
  Origin out = std::move(callee);  // the origin of the choice between the functions
  out.callables.clear();
  out.object = false;
  out.number = false;
  for (const Callable& one : callables) {
    out = stronger(std::move(out),
                   entered(*one.file, one.scope, one.partly_called ? Node() : call, where));
  }
  return out;
}

}  // namespace ddpdoctor::program
