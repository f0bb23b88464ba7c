// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/strings.h"

#include "collector/program/origin/callees.h"
#include "collector/program/questions/names.h"

namespace ddpdoctor::program {
namespace {

constexpr int kMostHelpers = 2;  // helpers that call helpers
constexpr std::size_t kMostStrings = 32;

/// "plan/{step}" of `f"plan/{step}"`.
std::string_view content_of(Node string) {
  std::string_view text = string.text();
  const std::size_t open = text.find_first_of("'\"");
  if (open == text.npos) {
    return {};
  }
  const char mark = text[open];
  text.remove_prefix(open);
  while (!text.empty() && text.front() == mark) {
    text.remove_prefix(1);
  }
  while (!text.empty() && text.back() == mark) {
    text.remove_suffix(1);
  }
  return text;
}

void add_strings(Node node, const Where& where, Slicer& slicer, int depth,
                 std::vector<std::string>& out) {
  each_inside(node, [&out](Node inner) {
    if (inner.is(NodeKind::kString) && out.size() < kMostStrings) {
      out.emplace_back(content_of(inner));
    }
  });
  for (const Node call : depth < kMostHelpers ? calls_within(node) : std::vector<Node>{}) {
    for (const Callee& helper : callees_of(call, where, slicer)) {
      const SourceIndex& index = *helper.file->facts->index;
      for (const std::size_t at : index.statements_of(helper.function())) {
        const Node statement = index.statements()[at].node;
        if (statement.is(NodeKind::kReturn)) {
          add_strings(statement, {.file = helper.file, .scope = helper.scope, .statement = at},
                      slicer, depth + 1, out);
        }
      }
    }
  }
}

}  // namespace

std::vector<std::string> strings_of(const SourceText& text, int line, const Sources& sources) {
  const SourceIndex& index = index_of(text);
  const std::size_t at = index.empty() ? kNone : index.statement_at(line);
  std::vector<std::string> out;
  if (at == kNone || is_header(index.statements()[at].node.kind())) {
    return out;
  }
  const Files files(text, sources);
  Slicer slicer(files, nullptr);
  add_strings(
      index.statements()[at].node,
      {.file = &files.file_of(text), .scope = index.statements()[at].scope, .statement = at},
      slicer, 0, out);
  return out;
}

}  // namespace ddpdoctor::program
