// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/locks.h"

#include <string_view>

#include "collector/program/questions/names.h"

namespace ddpdoctor::program {
namespace {

using std::string_view;

/// "X" of the first `X.acquire(…)` or `X.release()` in a statement; empty when there is none.
std::string subject_of(const Code& code, std::size_t statement, string_view method) {
  std::string subject;
  for (const Node part : code.own_parts(statement)) {
    each_inside(part, [&](Node node) {
      const Node callee = node.is(NodeKind::kCall) ? node.field(Field::kFunction) : Node();
      if (subject.empty() && callee.is(NodeKind::kAttribute) &&
          callee.field(Field::kAttribute).text() == method) {
        subject = callee.field(Field::kObject).one_line();
      }
    });
  }
  return subject;
}

void add_with_items(const Code& code, std::size_t header, std::vector<std::string>& out) {
  const Node items = code[header].node.first_child();
  for (const Node item : items.children()) {
    Node entered = item.field(Field::kValue);
    entered = entered.is(NodeKind::kAsPattern) ? entered.first_child() : entered;
    if (entered) {
      out.push_back(entered.one_line());
    }
  }
}

/// Adds each `.acquire()` before `before` in one suite that has no later release.
void add_acquired(const Code& code, std::size_t header, std::size_t before,
                  std::vector<std::string>& out) {
  std::vector<std::string> held;
  for (std::size_t i = header == kNone ? 0 : header + 1; i < before; ++i) {
    if (code.parent(i) != header) {
      continue;
    }
    const std::string taken = subject_of(code, i, "acquire");
    if (!taken.empty()) {
      held.push_back(taken);
    }
    std::erase(held, subject_of(code, i, "release"));
  }
  out.insert(out.end(), held.begin(), held.end());
}

}  // namespace

std::vector<std::string> locks_held(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  if (at == kNone) {
    return {};
  }
  std::vector<std::size_t> headers = code.headers_around(at);
  if (headers.empty() || code.kind(headers.back()) != NodeKind::kFunction) {
    headers.push_back(kNone);
  }
  std::vector<std::string> out;
  for (std::size_t i = headers.size(); i-- > 0;) {
    const std::size_t header = headers[i];
    if (header != kNone && code.kind(header) == NodeKind::kWith) {
      add_with_items(code, header, out);
    }
    add_acquired(code, header, i == 0 ? at : headers[i - 1], out);
  }
  return out;
}

}  // namespace ddpdoctor::program
