// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/swallowing_contexts.h"

#include <algorithm>

#include "collector/program/origin/callees.h"
#include "collector/program/questions/entered_contexts.h"
#include "collector/program/questions/exceptions.h"
#include "collector/program/questions/names.h"

namespace ddpdoctor::program {
namespace {

/// True for `return True` and `return issubclass(…)`; false for `return`, `return None` and
/// `return False`.
bool may_return_true(const Callee& exit) {
  const SourceIndex& index = *exit.file->facts->index;
  const auto all = index.statements_of(exit.function());
  return std::any_of(all.begin(), all.end(), [&index](std::size_t at) {
    const Node statement = index.statements()[at].node;
    const Node value =
        statement.is(NodeKind::kReturn) ? without_parentheses(statement.first_child()) : Node();
    return value && !value.is(NodeKind::kNone) && !value.is(NodeKind::kFalse);
  });
}

bool is_context_manager(const Callee& generator, const Files& files) {
  const Scope& function = generator.function();
  const std::size_t outer = function.outer == kNone ? 0 : function.outer;
  return function.is_generator &&
         std::any_of(function.decorators.begin(), function.decorators.end(), [&](Node decorator) {
           const Definition is = files.resolve(*generator.file, outer, dotted_name(decorator));
           return is.qualified == "contextlib.contextmanager" ||
                  is.qualified == "contextlib.asynccontextmanager";
         });
}

/// A `yield` is inside a `try` that catches: Python raises the exception at the `yield`.
bool catches_at_its_yield(const Callee& manager) {
  const SourceIndex& index = *manager.file->facts->index;
  const auto all = index.statements_of(manager.function());
  return std::any_of(all.begin(), all.end(), [&](std::size_t at) {
    const Statement& statement = index.statements()[at];
    return is_simple_statement(statement.node.kind()) && yields(statement.node) &&
           !swallowing_clauses(*manager.file->text, statement.line, {}).empty();
  });
}

bool catches(Node entered, const Where& where, Slicer& slicer) {
  const Definition made = slicer.class_of_value(entered, where);
  if (made.kind == Definition::Kind::kClass) {
    const auto exits = methods_of(made, "__exit__", slicer.files());
    return std::any_of(exits.begin(), exits.end(), may_return_true);
  }
  const auto called =
      entered.is(NodeKind::kCall) ? callees_of(entered, where, slicer) : std::vector<Callee>{};
  return std::any_of(called.begin(), called.end(), [&slicer](const Callee& one) {
    return is_context_manager(one, slicer.files()) && catches_at_its_yield(one);
  });
}

}  // namespace

bool is_caught_by_context(const Code& code, std::size_t with, const SourceText& text,
                          const Sources& sources) {
  if (sources.empty()) {
    return false;
  }
  const Files files(text, sources);
  Slicer slicer(files, nullptr);
  const File& file = files.file_of(text);
  bool found = false;
  each_entered(code, with, file, [&](Node entered, const Where& where) {
    found = found || catches(entered, where, slicer);
  });
  return found;
}

}  // namespace ddpdoctor::program
