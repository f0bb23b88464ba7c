// SPDX-License-Identifier: Apache-2.0
// When a function runs: a signal or a timer calls it, or only lines under a condition do.
#include <algorithm>

#include "collector/program/origin/callees.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

/// The argument at the row's position.
Node registered(Node call, const HandlerRow& row) {
  const std::vector<Node> given = arguments_of(call);
  const Node one = row.position < given.size() ? given[row.position] : Node();
  return one.is(NodeKind::kKeywordArgument) ? one.field(Field::kValue) : one;
}

const HandlerRow* row_of(const Files& files, const File& file, const CallIn& call) {
  const Node callee = call.call.field(Field::kFunction);
  const std::string dotted = dotted_name(callee);
  const Definition is = dotted.empty() ? Definition{} : files.resolve(file, call.scope, dotted);
  switch (is.kind) {
    case Definition::Kind::kLibrary:
      return handler_of(is.qualified);
    case Definition::Kind::kUnknown:
    case Definition::Kind::kVariable:
      return callee.is(NodeKind::kAttribute)
                 ? handler_of_attribute(callee.field(Field::kAttribute).text())
                 : nullptr;
    case Definition::Kind::kModule:
    case Definition::Kind::kFunction:
    case Definition::Kind::kClass:
      return nullptr;
  }
  return nullptr;
}

Origin started_by(const HandlerRow& row, const File& file, Node call) {
  Origin out = of(row.source);
  add_step(out, file, call);
  return out;
}

/// The lambda around a node, within its statement.
Node lambda_around(Node node) {
  for (Node at = node.parent(); at && !is_simple_statement(at.kind()); at = at.parent()) {
    if (at.is(NodeKind::kLambda)) {
      return at;
    }
    if (at.parent() == at) {
      break;
    }
  }
  return {};
}

}  // namespace

Origin Slicer::run_when(const File& file, std::size_t scope) {
  const Scope& function = file.scopes()[scope];
  if (function.kind != ScopeKind::kFunction) {
    return of(Source::kUniform);
  }
  for (const File& from : files_.all()) {
    const auto [first, last] = from.facts->arguments.equal_range(function.name);
    for (auto one = first; one != last; ++one) {
      const HandlerRow* row = row_of(files_, from, one->second);
      if (row != nullptr &&
          last_of(dotted_name(registered(one->second.call, *row))) == function.name) {
        return started_by(*row, from, one->second.call);
      }
    }
  }
  return of(Source::kUniform);
}

Origin Slicer::called_when(const File& file, std::size_t scope) {
  constexpr int kMostCalls = 8;
  const Scope& function = file.scopes()[scope];
  const Key key{&file, scope, "called"};
  // Python itself calls methods such as __init__ and __exit__.
  if (function.kind != ScopeKind::kFunction || function.name.starts_with("__") ||
      open_.contains(key) || !enter(key)) {
    return of(Source::kUniform);
  }
  Origin out = of(Source::kUniform);
  bool always = false;
  int seen = 0;
  for (const File& from : files_.all()) {
    const auto [first, last] = from.facts->calls.equal_range(function.name);
    for (auto one = first; one != last && !always; ++one) {
      const std::size_t statement = from.facts->index->statement_of(one->second.call);
      const Where there{.file = &from, .scope = one->second.scope, .statement = statement};
      const auto callees = callees_of(one->second.call, there, *this);
      if (std::find(callees.begin(), callees.end(), Callee{.file = &file, .scope = scope}) ==
          callees.end()) {
        continue;
      }
      Origin guard =
          guards(from, one->second.scope, statement, {.file = &from, .scope = one->second.scope});
      always = ++seen > kMostCalls || guard.like_an_option ||
               (!is_own(guard.source) && guard.source != Source::kRank);
      out = stronger(std::move(out), std::move(guard));
      add_step(out, from, one->second.call);
    }
  }
  leave(key);
  return always ? of(Source::kUniform) : out;
}

Origin Slicer::raised(Node event) {
  const std::string dotted = dotted_name(event);
  Origin out = of(Source::kUniform);
  for (const File& file : dotted.empty() ? std::vector<File>() : files_.all()) {
    const auto [first, last] = file.facts->calls.equal_range("set");
    for (auto one = first; one != last; ++one) {
      const Node object = one->second.call.field(Field::kFunction).field(Field::kObject);
      if (last_of(dotted_name(object)) != last_of(dotted)) {
        continue;
      }
      const Node lambda = lambda_around(one->second.call);
      const CallIn around{.scope = one->second.scope,
                          .call = lambda ? lambda.parent().parent() : Node()};
      const HandlerRow* row =
          around.call.is(NodeKind::kCall) ? row_of(files_, file, around) : nullptr;
      Origin when = row != nullptr && registered(around.call, *row) == lambda
                        ? started_by(*row, file, around.call)
                        : run_when(file, one->second.scope);
      if (when.source != Source::kUniform) {
        add_step(when, file, one->second.call);
        out = stronger(std::move(out), std::move(when));
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::program
