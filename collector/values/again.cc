// SPDX-License-Identifier: Apache-2.0
#include "collector/values/again.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/program/syntax/bindings.h"

namespace ddpdoctor::values {

namespace {

using program::Field;
using program::Node;
using program::NodeKind;

Node statement_at(const program::SourceIndex& index, int line) {
  const std::size_t statement = index.statement_at(line);
  return statement == program::kNone ? Node() : index.statements()[statement].node;
}

Node outermost_loop(Node here, Node function) {
  Node out;
  for (Node outer = here.parent(); outer && outer != function; outer = outer.parent()) {
    out = outer.is(NodeKind::kFor) || outer.is(NodeKind::kWhile) ? outer : out;
  }
  return out;
}

std::string root_of(const std::string& path) {
  return path.substr(0, path.find('.'));
}

bool is_method(const program::SourceIndex& index, const program::Scope& function) {
  return function.outer != program::kNone &&
         index.scopes()[function.outer].kind == program::ScopeKind::kClass;
}

}  // namespace

Again::Again(const Effects& effects, const program::SourceIndex& index,
             const program::Scope& function, int line)
    : effects_(effects), loop_(outermost_loop(statement_at(index, line), function.node)) {
  if (!loop_) {
    return;
  }
  add_called(loop_, called_);
  for (const program::Binding& binding : program::bindings_of(index, function)) {
    if (loop_.holds(binding.node) && changes_something(binding)) {
      written_.insert(binding.target.substr(binding.target.rfind('.') + 1));
    }
  }
  same_object_ = true;  // `self` does not change during one call of this function
  same_object_ = calls_on_steady(index, function, line, true);
}

void Again::enter(const program::SourceIndex& index, const program::Scope& function, int line) {
  same_object_ = calls_on_steady(index, function, line, false);
}

/// Every callee at the line is read through names that the loop does not assign.
bool Again::calls_on_steady(const program::SourceIndex& index, const program::Scope& function,
                            int line, bool in_loop) const {
  const Node statement = statement_at(index, line);
  std::vector<Node> calls = statement ? program::calls_within(statement) : std::vector<Node>();
  std::erase_if(calls, [line](Node call) { return call.line() > line || call.last_line() < line; });
  return !calls.empty() && std::all_of(calls.begin(), calls.end(), [&](Node call) {
    const std::string path = program::dotted_name(call.field(Field::kFunction));
    return !path.empty() && is_steady(index, function, path, in_loop);
  });
}

bool Again::is_steady(const program::SourceIndex& index, const program::Scope& function,
                      const std::string& path, bool in_loop) const {
  const std::string root = root_of(path);
  const auto& parameters = function.parameters;
  const bool receiver = is_method(index, function) && !parameters.empty() &&
                        parameters.front().name == root && same_object_;
  if (!receiver && !in_loop) {
    const auto bindings = program::bindings_of(index, function);
    const bool own =
        std::any_of(parameters.begin(), parameters.end(),
                    [&root](const auto& one) { return one.name == root; }) ||
        std::any_of(bindings.begin(), bindings.end(),
                    [&root](const program::Binding& one) { return one.target == root; });
    if (own) {
      return false;
    }
  }
  for (const std::string_view name : base::split(path, '.')) {
    const bool is_root = name.data() == path.data();
    if ((!is_root || !receiver) && assigned(std::string(name))) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> Again::assigned(const std::string& name) const {
  if (written_.contains(name)) {
    return fmt::format("`{}` is assigned in the loop", name);
  }
  const auto writer = effects_.writer(name, called_);
  return writer ? std::optional(fmt::format("`{}` is assigned in line {}, in {}", name,
                                            writer->line, writer->function))
                : std::nullopt;
}

Since Again::since(const program::SourceIndex& index, const program::Scope& function,
                   Node expression) const {
  for (const std::string& path : operands_of(expression)) {
    if (!loop_ || !is_steady(index, function, path, false)) {
      return {.freshness = Freshness::kStale, .reason = std::string(kNotAgain)};
    }
  }
  return {};
}

Since Again::since(const std::set<std::string>& read) const {
  for (const std::string& path : read) {
    if (const auto why = assigned(path.substr(path.rfind('.') + 1))) {
      return {.freshness = Freshness::kStale, .reason = *why};
    }
  }
  return {};
}

}  // namespace ddpdoctor::values
