// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/calls_at.h"

#include <algorithm>
#include <string>

#include "collector/detectors/paths/source_blocks.h"
#include "collector/program/origin/definitions.h"

namespace ddpdoctor::detectors {
namespace {

using program::Definition;
using program::Field;
using program::Node;
using program::NodeKind;

Node callee_of(Node call) {
  return program::without_parentheses(call.field(Field::kFunction));
}

std::string_view name_of(Node call) {
  const Node callee = callee_of(call);
  return callee.is(NodeKind::kAttribute) ? callee.field(Field::kAttribute).text() : callee.text();
}

/// The name determines the target: a library function, a class, a `def` or a builtin.
bool is_fixed(const program::Files& files, const program::File& file, std::size_t scope,
              Node call) {
  const std::string dotted = program::dotted_name(callee_of(call));
  if (dotted.empty()) {
    return false;
  }
  const Definition is = files.resolve(file, scope, dotted);
  const bool plain = dotted.find('.') == std::string::npos;
  return is.kind == Definition::Kind::kLibrary || is.kind == Definition::Kind::kClass ||
         is.kind == Definition::Kind::kFunction || (plain && is.kind == Definition::Kind::kUnknown);
}

}  // namespace

Node call_to(const model::JobModel& job, const model::CallSite& at, const model::CallSite& next) {
  const program::SourceText& lines = lines_of(job, at.file);
  const program::SourceIndex& index = program::index_of(lines);
  const std::size_t statement = index.empty() ? program::kNone : index.statement_at(at.line);
  if (statement == program::kNone) {
    return {};
  }
  const program::Statement& around = index.statements()[statement];
  std::vector<Node> calls = program::calls_within(around.node);
  std::erase_if(calls, [&](Node call) {
    return call.line() > at.line || call.last_line() < at.line || call.line() > around.last_line;
  });
  const std::string_view wanted = program::last_of(next.function);
  const auto named = [wanted](Node call) { return name_of(call) == wanted; };
  const auto by_name = std::find_if(calls.begin(), calls.end(), named);
  if (by_name != calls.end()) {
    return std::find_if(std::next(by_name), calls.end(), named) == calls.end() ? *by_name : Node();
  }
  const program::Files files(lines, job.sources);
  const program::File& file = files.file_of(lines);
  const std::vector<Node> all = calls;
  std::erase_if(calls, [&](Node call) {
    const bool asked_for = std::any_of(all.begin(), all.end(), [call](Node outer) {
      return callee_of(outer) == call;  // getattr(self, name)(x): the outer call runs it
    });
    return asked_for || is_fixed(files, file, around.scope, call);
  });
  return calls.size() == 1 ? calls.front() : Node();
}

bool is_of_receiver(const program::SourceText& lines, int line, Node expression) {
  Node root = expression;
  while (root.is(NodeKind::kAttribute)) {
    root = program::without_parentheses(root.field(Field::kObject));
  }
  const program::SourceIndex& index = program::index_of(lines);
  if (!root.is(NodeKind::kName) || index.empty()) {
    return false;
  }
  const program::Scope& function = index.function_at(line);
  const bool method = function.outer != program::kNone &&
                      index.scopes()[function.outer].kind == program::ScopeKind::kClass;
  return method && !function.parameters.empty() && function.parameters.front().name == root.text();
}

}  // namespace ddpdoctor::detectors
