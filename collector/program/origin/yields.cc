// SPDX-License-Identifier: Apache-2.0
#include "collector/program/origin/yields.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "collector/program/origin/callees.h"
#include "collector/program/origin/iterable.h"
#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {
namespace {

constexpr int kDeepestYield = 4;
constexpr std::size_t kMostYields = 16;

std::optional<Callee> only_generator(const std::vector<Callee>& found) {
  const bool generates = found.size() == 1 && found.front().function().is_generator &&
                         found.front().file->path != nullptr;
  return generates ? std::optional(found.front()) : std::nullopt;
}

/// The generator function that iterating over this value runs.
std::optional<Callee> generator_of(Node node, const Where& where, Slicer& slicer, int depth) {
  node = without_parentheses(node);
  if (!node || depth > kDeepestYield) {
    return std::nullopt;
  }
  const Definition made = slicer.class_of_value(node, where);
  if (made.kind == Definition::Kind::kClass) {
    return only_generator(methods_of(made, "__iter__", slicer.files()));
  }
  if (!node.is(NodeKind::kCall)) {
    return std::nullopt;
  }
  if (auto called = only_generator(callees_of(node, where, slicer))) {
    return called;
  }
  const std::vector<Node> given = arguments_of(node);
  const std::string callee = dotted_name(node.field(Field::kFunction));
  return passes_on(last_of(callee)) && !given.empty()
             ? generator_of(given.front(), where, slicer, depth + 1)
             : std::nullopt;
}

bool delegates(Node node) {
  return node.is(NodeKind::kYield)
             ? node.text().starts_with("yield from")
             : std::ranges::any_of(node.children(), [](Node child) { return delegates(child); });
}

/// The statements of the function that yield, without those of functions inside it.
std::vector<Yield> yields_of(const Callee& generator) {
  std::vector<Yield> out;
  const SourceIndex& index = *generator.file->facts->index;
  const Scope& function = generator.function();
  for (const std::size_t at : index.statements_of(function)) {
    const Statement& statement = index.statements()[at];
    if (is_simple_statement(statement.node.kind()) && out.size() < kMostYields &&
        yields(statement.node)) {
      out.push_back({.file = generator.file->path,
                     .text = generator.file->text,
                     .line = statement.line,
                     .function = function.name,
                     .delegates = delegates(statement.node)});
    }
  }
  return out;
}

std::vector<Yield> yields_of_iterable(const Files& /*files*/, Slicer& slicer, Node iterable,
                                      const Where& where) {
  const auto generator = generator_of(iterable, where, slicer, 0);
  return generator ? yields_of(*generator) : std::vector<Yield>{};
}

void add_yielded(Node node, std::vector<Node>& out) {
  for (const Node child : node.children()) {
    if (child.is(NodeKind::kYield) && child.first_child()) {
      out.push_back(child.first_child());
    }
    if (!child.is(NodeKind::kLambda) && !child.is(NodeKind::kGenerator)) {
      add_yielded(child, out);
    }
  }
}

}  // namespace

std::vector<Node> yielded_by(const File& file, const Scope& function) {
  std::vector<Node> out;
  const SourceIndex& index = *file.facts->index;
  for (const std::size_t at : index.statements_of(function)) {
    if (is_simple_statement(index.statements()[at].node.kind())) {
      add_yielded(index.statements()[at].node, out);
    }
  }
  out.resize(std::min(out.size(), kMostYields));
  return out;
}

std::optional<Origin> Slicer::yielded(Node call, const Where& where) {
  const auto generator = only_generator(callees_of(call, where, *this));
  const Key key{generator ? generator->file : nullptr, generator ? generator->scope : 0, "yield"};
  if (!generator || !enter(key)) {
    return std::nullopt;
  }
  const Activation activation{
      .call = call, .scope = generator->scope, .file = generator->file, .caller = where};
  // Even if its source shows no more: the generator decides it.
  Origin out = unknown(generator->function().name);
  for (const Node value : yielded_by(*generator->file, generator->function())) {
    const Where inside{.file = generator->file,
                       .scope = generator->scope,
                       .statement = generator->file->facts->index->statement_of(value),
                       .activation = &activation,
                       .depth = where.depth};
    Origin one = evaluate(value, inside);
    one.number = false;
    if (one.source != Source::kUniform) {
      add_step(one, *generator->file, value);
    }
    out = stronger(std::move(out), std::move(one));
  }
  leave(key);
  return out;
}

std::vector<Yield> yields_behind(const SourceText& text, int line, const Sources& sources) {
  return about_iterable(text, line, sources, yields_of_iterable).value_or(std::vector<Yield>{});
}

std::vector<Yield> yields_behind(std::string_view iterable, const Asked& asked,
                                 const Sources& sources) {
  return about_expression(iterable, asked, sources, yields_of_iterable);
}

}  // namespace ddpdoctor::program
