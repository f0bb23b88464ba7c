// SPDX-License-Identifier: Apache-2.0
// An untrusted Python source: parsed and indexed; every scope's decisions, bindings and flow, and
// what separates lines of it, also along call strings.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/text.h"
#include "collector/program/flow/separation.h"
#include "collector/program/syntax/bindings.h"
#include "collector/program/syntax/decisions.h"
#include "collector/program/syntax/source_index.h"
#include "collector/values/from_syntax.h"

namespace {

using namespace ddpdoctor;

constexpr std::size_t kMostScopes = 32;
constexpr int kMostLines = 400;

/// With `holes`, every other line is unknown, as in a recording that has only the lines it names.
program::SourceText source(std::string_view text, bool holes) {
  std::map<int, std::string> lines;
  int number = 0;
  for (const std::string_view line : base::split(text, '\n')) {
    if (++number > kMostLines) {
      break;
    }
    if (!holes || number % 3 != 0) {
      lines[number] = std::string(line);
    }
  }
  return {std::move(lines)};
}

std::size_t separated(const program::SourceText& text, const program::Scope& scope) {
  std::size_t seen = 0;
  const int middle = (scope.header_line + scope.last_line) / 2;
  for (const auto& [a, b] : {std::pair(scope.header_line, scope.last_line),
                             std::pair(middle, scope.last_line), std::pair(middle, middle + 1)}) {
    for (const auto& one : program::separating_decisions(text, scope, a, b)) {
      seen += 1 + program::changes_between(text, scope, one.decision, one.a, a, "x").size();
    }
  }
  const program::CallString here = {{&text, scope.name, middle}, {&text, "<module>", 1}};
  const program::CallString there = {{&text, scope.name, scope.last_line}, {&text, "<module>", 2}};
  return seen + program::separating_decisions(here, there).size();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const program::SourceText text = source(bytes, size % 2 == 1);
  const program::SourceIndex& index = program::index_of(text);
  if (index.empty()) {
    return 0;
  }
  std::size_t seen = 0;
  std::size_t scopes = 0;
  for (const program::Scope& scope : index.scopes()) {
    if (++scopes > kMostScopes) {
      break;
    }
    seen += program::flow_of(text, scope).graph.points().size();
    for (const program::Decision& decision : program::decisions_of(index, scope)) {
      seen += values::expression_of(decision.condition).parts.size();
    }
    for (const program::Binding& binding : program::bindings_of(index, scope)) {
      seen += program::may_change(binding, "self.x") ? 1 : 0;
    }
    seen += values::returned_by(scope.node).has_value() ? 1 : 0;
    seen += separated(text, scope);
  }
  return seen == static_cast<std::size_t>(-1) ? 1 : 0;
}
