// SPDX-License-Identifier: Apache-2.0
// Finds the iterable of a `for` and answers questions about it.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <type_traits>

#include "collector/program/origin/slicer.h"

namespace ddpdoctor::program {

inline bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The function returns the items of its first argument.
inline bool passes_on(std::string_view function) {
  return is_one_of(function, {"enumerate", "iter", "sorted", "reversed", "list", "tuple", "zip",
                              "islice", "tqdm", "trange", "prefetch", "chain"});
}

/// `class Averages(dict)`: an object of it holds its own elements.
bool extends_container(const Definition& made, const Files& files);

/// The `for` at a line; no node if the line has another statement.
inline Node loop_at(const SourceIndex& index, int line) {
  const std::size_t at = index.empty() ? kNone : index.statement_at(line);
  const Node node = at == kNone ? Node() : index.statements()[at].node;
  return node.is(NodeKind::kFor) ? node : Node();
}

/// Calls `question(files, slicer, iterable, where)` for the iterable of the `for` at `line`;
/// returns nothing if there is no `for` at the line.
template <typename Question>
auto about_iterable(const SourceText& text, int line, const Sources& sources, Question question)
    -> std::optional<std::invoke_result_t<Question, const Files&, Slicer&, Node, const Where&>> {
  const Node loop = loop_at(index_of(text), line);
  if (!loop) {
    return std::nullopt;
  }
  const Files files(text, sources);
  Slicer slicer(files, nullptr);
  const File& file = files.file_of(text);
  const std::size_t statement = file.facts->index->statement_of(loop);
  const Where where{.file = &file,
                    .scope = file.facts->index->statements()[statement].scope,
                    .statement = statement};
  return question(files, slicer, loop.field(Field::kRight), where);
}

/// The same for an iterable that is given as an expression.
template <typename Question>
auto about_expression(std::string_view iterable, const Asked& asked, const Sources& sources,
                      Question question) {
  SourceText placed;
  placed[1] = "(" + std::string(iterable) + ")";
  const SourceIndex& index = index_of(placed);
  const Node statement = index.empty() ? Node() : index.root().first_child();
  const Files files(*asked.text, sources);
  Slicer slicer(files, asked.callers);
  const File& file = files.file_of(*asked.text);
  const std::size_t at =
      file.facts->index->empty() ? kNone : file.facts->index->statement_at(asked.line);
  const Where where{.file = &file,
                    .scope = at == kNone ? 0 : file.facts->index->statements()[at].scope,
                    .statement = at};
  return question(files, slicer, statement.first_child(), where);
}

}  // namespace ddpdoctor::program
