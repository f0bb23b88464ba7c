// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/hands_on.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "collector/program/origin/definitions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/expressions.h"

namespace ddpdoctor::program {
namespace {

bool is_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// "tensor", "dist.ReduceOp.SUM", "3", "\"x\"" without a call, a subscript or an operator.
bool is_simple(std::string_view value) {
  return !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return is_name(c) || c == '.' || c == '"' || c == '\'';
  });
}

/// "peer" of "dst=peer".
std::string_view value_of(std::string_view argument) {
  std::size_t end = 0;
  while (end < argument.size() && is_name(argument[end])) {
    ++end;
  }
  const bool keyword = end < argument.size() && argument[end] == '=' &&
                       (end + 1 == argument.size() || argument[end + 1] != '=');
  return base::trim(keyword ? argument.substr(end + 1) : argument);
}

}  // namespace

bool hands_on(const SourceText& text, int line, std::string_view function) {
  const FileFacts& facts = facts_of(text);
  const Scope* scope =
      facts.index == nullptr ? nullptr : facts.index->scope_of_frame(line, last_name(function));
  const std::string statement = statement_at(text, line);
  const std::vector<Call> calls = calls_in(statement);
  if (scope == nullptr || scope->kind == ScopeKind::kModule || calls.size() != 1) {
    return false;
  }
  bool any = false;
  for (const std::string_view argument : calls.front().arguments) {
    const std::string_view value = value_of(argument);
    const std::string_view root = value.substr(0, value.find('.'));
    const bool parameter = std::any_of(scope->parameters.begin(), scope->parameters.end(),
                                       [root](const Parameter& one) { return one.name == root; });
    const bool attribute = root.size() < value.size();
    const bool constant = value.empty() ||
                          std::isalpha(static_cast<unsigned char>(value.front())) == 0 ||
                          value == "None" || value == "True" || value == "False";
    if (!is_simple(value) || !(parameter || attribute || constant)) {
      return false;
    }
    any = any || (parameter && !attribute);
  }
  return any;
}

}  // namespace ddpdoctor::program
