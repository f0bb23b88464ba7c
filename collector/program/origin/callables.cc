// SPDX-License-Identifier: Apache-2.0
// Functions as values: in attributes, tables, parameters, conditionals, lambdas, partial(…). They
// are followed like all values; a call of such a value enters every function it can be.
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {

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
