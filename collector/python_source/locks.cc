// SPDX-License-Identifier: Apache-2.0
// Which locks the source says are held on a line.
#include <algorithm>
#include <array>

#include "collector/python_source/assignments.h"
#include "collector/python_source/blocks.h"
#include "collector/python_source/structure.h"

namespace ddpdoctor::python_source {
namespace {

using std::string_view;

bool looks_like_lock(Tokens expression) {
  constexpr std::array<string_view, 8> kParts = {
      "lock", "Lock", "mutex", "Mutex", "Semaphore", "semaphore", "Condition", "condition"};
  return std::any_of(expression.begin(), expression.end(), [&](const Token& token) {
    return token.kind == TokenKind::kName &&
           std::any_of(kParts.begin(), kParts.end(), [&token](string_view part) {
             return token.text.find(part) != string_view::npos;
           });
  });
}

/// By its name, or by what it was made from.
bool is_lock(const Structure& structure, Tokens expression, std::size_t at) {
  if (looks_like_lock(expression)) {
    return true;
  }
  const std::string name = text_of(expression);
  for (const std::size_t function : {structure.function_around(at), kNowhere}) {
    const auto sources = assignments_of(structure, name, function);
    if (std::any_of(sources.begin(), sources.end(),
                    [](const Assignment& a) { return looks_like_lock(a.value); })) {
      return true;
    }
  }
  return false;
}

/// "X" of `X.acquire(...)` or `X.release()`; empty when the statement is none.
std::string subject_of(Tokens statement, string_view method) {
  for (std::size_t i = 1; i + 2 < statement.size(); ++i) {
    if (statement[i].is(".") && statement[i + 1].is(method) && statement[i + 2].is("(")) {
      std::size_t begin = i;
      while (begin > 0 &&
             (statement[begin - 1].kind == TokenKind::kName || statement[begin - 1].is(".")) &&
             !statement[begin - 1].is("if") && !statement[begin - 1].is("not")) {
        --begin;
      }
      return text_of(statement.subspan(begin, i - begin));
    }
  }
  return {};
}

void add_with_items(const Structure& structure, std::size_t header, std::vector<std::string>& out) {
  const Tokens entered = structure.statements[header].header();
  if (entered.empty()) {
    return;
  }
  const bool grouped = entered.front().is("(") && entered.back().is(")") &&
                       find_token(entered, ")", 0) == entered.size() - 1;
  const Tokens items = grouped ? entered.subspan(1, entered.size() - 2) : entered;
  const int depth = grouped ? 1 : 0;
  for (Tokens item : split_at(items, ",", depth)) {
    item = item.first(find_token(item, "as", depth));
    if (!item.empty() && is_lock(structure, item, header)) {
      out.push_back(text_of(item));
    }
  }
}

/// `.acquire()` before `before` in one suite and not released since.
void add_acquired(const Structure& structure, std::size_t header, std::size_t before,
                  std::vector<std::string>& out) {
  std::vector<std::string> held;
  for (std::size_t i = header == kNowhere ? 0 : header + 1; i < before; ++i) {
    if (structure.statements[i].parent != header) {
      continue;
    }
    const std::string taken = subject_of(structure.statements[i].tokens(), "acquire");
    const std::string given = subject_of(structure.statements[i].tokens(), "release");
    if (!taken.empty()) {
      held.push_back(taken);
    }
    std::erase(held, given);
  }
  out.insert(out.end(), held.begin(), held.end());
}

}  // namespace

std::vector<std::string> locks_held(const Lines& lines, int line) {
  const Structure& structure = structure_of(lines);
  const std::size_t at = structure.at(line);
  if (at == kNowhere) {
    return {};
  }
  std::vector<std::size_t> headers = structure.headers_around(at);
  const bool in_function =
      !headers.empty() && structure.statements[headers.back()].kind == BlockKind::kFunction;
  if (!in_function) {
    headers.push_back(kNowhere);
  }
  std::vector<std::string> out;
  for (std::size_t i = headers.size(); i-- > 0;) {
    const std::size_t header = headers[i];
    if (header != kNowhere && structure.statements[header].kind == BlockKind::kWith) {
      add_with_items(structure, header, out);
    }
    add_acquired(structure, header, i == 0 ? at : headers[i - 1], out);
  }
  const Statement& own = structure.statements[at];
  if (own.kind == BlockKind::kWith && own.has_inline_body()) {
    add_with_items(structure, at, out);
  }
  return out;
}

}  // namespace ddpdoctor::python_source
