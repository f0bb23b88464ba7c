// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/locks.h"

#include <algorithm>
#include <string_view>

#include "collector/program/questions/names.h"
#include "collector/program/syntax/with_items.h"

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
      for (const Node entered : entered_by(code[header].node)) {
        out.push_back(entered.one_line());
      }
    }
    add_acquired(code, header, i == 0 ? at : headers[i - 1], out);
  }
  return out;
}

std::vector<std::string> locks_taken(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  std::vector<std::string> out;
  if (at == kNone) {
    return out;
  }
  const std::size_t header = code.header_at(line);
  if (header != kNone && code.kind(header) == NodeKind::kWith) {
    const auto all = entered_by(code[header].node);
    // Behind the first line of a header, the line is that of the item which is entered.
    const bool told = std::any_of(all.begin(), all.end(), [&](Node one) {
      return line > code[header].line && one.line() == line;
    });
    for (const Node one : all) {
      if (!one.is(NodeKind::kCall) && (!told || one.line() == line)) {
        out.push_back(one.one_line());
      }
    }
    return out;
  }
  for (std::size_t i = at + 1; i-- > 0 && code[i].last_line >= line && out.empty();) {
    if (const std::string taken = subject_of(code, i, "acquire"); !taken.empty()) {
      out.push_back(taken);
    }
  }
  return out;
}

bool enters_contexts(const SourceText& text, int line) {
  const Code code(text);
  const std::size_t at = code.at(line);
  return at != kNone && code.kind(at) == NodeKind::kWith;
}

}  // namespace ddpdoctor::program
