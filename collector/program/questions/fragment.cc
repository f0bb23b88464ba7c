// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/fragment.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"
#include "base/word.h"
#include "collector/program/syntax/open_text.h"

namespace ddpdoctor::program {
namespace {

using std::string_view;

string_view first_word(string_view text) {
  std::size_t end = 0;
  while (end < text.size() && base::is_word(text[end])) {
    ++end;
  }
  return text.substr(0, end);
}

/// The header that must precede a text that begins with a later clause.
string_view opener_of(string_view word) {
  if (word == "elif" || word == "else") {
    return "if _: pass\n";
  }
  if (word == "except" || word == "finally") {
    return "try: pass\n";
  }
  return word == "case" ? "match _:\n " : "";
}

bool is_header_word(string_view word) {
  constexpr std::array<string_view, 14> kWords = {"if",    "elif",   "else",    "for",  "while",
                                                  "try",   "except", "finally", "with", "def",
                                                  "class", "async",  "match",   "case"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

/// The first colon outside brackets and strings; `last`: only white space follows it.
struct Colon {
  bool known = false;
  bool last = false;
};

Colon colon_of(string_view text) {
  int depth = 0;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      i += c == '\\' ? 1 : 0;
      quote = c == quote ? 0 : quote;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      break;
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      --depth;
    } else if (c == ':' && depth == 0 && text.substr(i, 2) != ":=") {
      const string_view rest = base::trim(text.substr(i + 1));
      return {.known = true, .last = rest.empty() || rest.front() == '#'};
    }
  }
  return {};
}

WholeText whole(string_view text) {
  const string_view word = first_word(text);
  WholeText out;
  out.buffer = opener_of(word);
  for (const char c : text) {
    out.buffer += c == '\0' ? ' ' : c;
  }
  OpenText open;
  for (const string_view line : base::split(text, '\n')) {
    open.feed(line);
  }
  if (const std::string closers = open.closers(); closers.find_first_of("'\"") == 0) {
    out.buffer.append(closers, 0, 3);  // the end of a string that began elsewhere
  }
  const bool soft = word == "match" || word == "case";
  if (const Colon colon = colon_of(text); is_header_word(word) && !(soft && !colon.known)) {
    out.buffer += !colon.known ? ": pass" : colon.last ? "\n  pass" : "";
  } else if (text.starts_with('@')) {
    out.buffer += "\ndef _(): pass";
  }
  out.buffer += '\n';
  return out;
}

string_view without_indent(string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\f\r\n");
  return first == string_view::npos ? string_view() : text.substr(first);
}

}  // namespace

Fragment::Fragment(string_view text)
    : text_(text),
      skipped_(text.size() - without_indent(text).size()),
      added_(opener_of(first_word(without_indent(text))).size()),
      tree_(whole(without_indent(text))) {}

Node Fragment::expression() const {
  const Node statement = root().first_child();
  return statement.is(NodeKind::kExpressionStatement) ? statement.first_child() : statement;
}

std::size_t Fragment::offset(std::uint32_t byte) const {
  const std::size_t in_text = byte < added_ ? 0 : byte - added_;
  return std::min(in_text + skipped_, text_.size());
}

std::size_t Fragment::begin(Node node) const {
  return offset(node.begin());
}

std::size_t Fragment::end(Node node) const {
  return offset(node.end());
}

}  // namespace ddpdoctor::program
