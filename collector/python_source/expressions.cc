// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/expressions.h"

#include <algorithm>
#include <array>

#include "collector/python_source/rank_words.h"
#include "collector/python_source/tokens.h"

namespace ddpdoctor::python_source {
namespace {

// Before a bracket these begin a group, not its arguments (is_keyword has those inside
// expressions).
constexpr std::array<std::string_view, 12> kStatementWords = {"while",  "elif",   "return", "yield",
                                                              "assert", "del",    "raise",  "with",
                                                              "from",   "import", "except", "case"};

bool is_name(const Token& token) {
  return token.kind == TokenKind::kName && !is_keyword(token.text) &&
         std::find(kStatementWords.begin(), kStatementWords.end(), token.text) ==
             kStatementWords.end();
}

/// Index of the bracket that closes the one at `open`, or tokens.size().
std::size_t closing(Tokens tokens, std::size_t open) {
  std::size_t at = open + 1;
  while (at < tokens.size() && !(tokens[at].is(")") && tokens[at].depth == tokens[open].depth)) {
    ++at;
  }
  return at;
}

std::size_t offset_in(std::string_view text, const Token& token) {
  return static_cast<std::size_t>(token.text.data() - text.data());
}

/// ".pop(", ".set_result(" …: methods whose first letters say that they change what they are
/// called on.
bool is_changing_method(std::string_view method) {
  constexpr std::array<std::string_view, 8> kChanges = {"pop",    "remove", "clear", "discard",
                                                        "append", "set",    "put",   "extend"};
  return method == "get" || method == "update" ||
         std::any_of(kChanges.begin(), kChanges.end(),
                     [method](std::string_view change) { return method.starts_with(change); });
}

std::string_view without_quotes(std::string_view text) {
  constexpr std::string_view kQuotes = "\"'";
  const std::size_t first = text.find_first_of(kQuotes);
  const std::size_t last = text.find_last_of(kQuotes);
  return first < last && last != std::string_view::npos ? text.substr(first + 1, last - first - 1)
                                                        : std::string_view();
}

/// What stands behind a name changes its value or what it holds.
bool is_change(Tokens behind) {
  if (behind.empty()) {
    return false;
  }
  const Token& next = behind.front();
  constexpr std::array<std::string_view, 4> kComparisons = {"==", "!=", "<=", ">="};
  const bool assigns =
      next.kind == TokenKind::kOperator && next.text.ends_with('=') &&
      std::find(kComparisons.begin(), kComparisons.end(), next.text) == kComparisons.end() &&
      (next.text != "=" || next.depth == 0);  // deeper it passes an argument
  return assigns || next.is("[") ||
         (next.is(".") && behind.size() > 2 && is_changing_method(behind[1].text) &&
          behind[2].is("("));
}

}  // namespace

std::string_view last_name(std::string_view dotted) {
  return dotted.substr(dotted.rfind('.') + 1);
}

std::vector<Call> calls_in(std::string_view text) {
  const std::vector<Token> tokens = tokens_of(text);
  std::vector<Call> out;
  for (std::size_t open = 1; open < tokens.size(); ++open) {
    if (!tokens[open].is("(") || !is_name(tokens[open - 1])) {
      continue;
    }
    std::size_t first = open - 1;
    while (first >= 1 && tokens[first - 1].is(".")) {
      --first;
      if (first == 0 || tokens[first - 1].kind != TokenKind::kName) {
        break;  // on the result of a call, or of a subscript
      }
      --first;
    }
    const std::size_t close = closing(tokens, open);
    if (close == tokens.size()) {
      continue;
    }
    const std::size_t begin = offset_in(text, tokens[first]);
    const std::size_t end_of_name =
        offset_in(text, tokens[open - 1]) + tokens[open - 1].text.size();
    out.push_back({.callee = text.substr(begin, end_of_name - begin),
                   .begin = begin,
                   .end = offset_in(text, tokens[close]) + 1});
  }
  return out;
}

std::vector<std::string_view> arguments_of(std::string_view text, const Call& call) {
  const std::string_view whole = text.substr(call.begin, call.end - call.begin);
  const std::size_t open = whole.find('(', call.callee.size());
  if (open == std::string_view::npos || whole.size() < open + 2) {
    return {};
  }
  const std::string_view inside = whole.substr(open + 1, whole.size() - open - 2);
  const std::vector<Token> tokens = tokens_of(inside);
  std::vector<std::string_view> out;
  for (const Tokens part : split_at(tokens, ",", 0)) {
    if (!part.empty()) {
      const std::size_t begin = offset_in(inside, part.front());
      const std::size_t end = offset_in(inside, part.back()) + part.back().text.size();
      out.push_back(inside.substr(begin, end - begin));
    }
  }
  return out;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (const Token& token : tokens_of(text)) {
    if (token.kind != TokenKind::kOperator) {
      out.push_back(token.text);
    }
  }
  return out;
}

std::vector<std::string_view> values_read(std::string_view text) {
  const std::vector<Token> tokens = tokens_of(text);
  std::vector<std::string_view> out;
  for (const NameChain& chain : name_chains(tokens)) {
    const bool called = chain.end < tokens.size() && tokens[chain.end].is("(");
    if (called && chain.words.size() > 1) {
      out.push_back(chain.words[chain.words.size() - 2]);
    } else if (!called && is_name(tokens[chain.end - 1])) {
      out.push_back(chain.words.back());
    }
  }
  std::erase(out, "self");
  return out;
}

bool changes(std::string_view statement, std::string_view name) {
  const std::vector<Token> tokens = tokens_of(statement);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == TokenKind::kName && tokens[i].text == name &&
        is_change(Tokens(tokens).subspan(i + 1))) {
      return true;
    }
  }
  return false;
}

std::string_view comprehension_in(std::string_view text) {
  const std::vector<Token> tokens = tokens_of(text);
  const auto first = std::find_if(tokens.begin(), tokens.end(), [](const Token& token) {
    return token.is("for") && token.depth > 0;
  });
  if (first == tokens.end()) {
    return {};
  }
  const auto close = std::find_if(first, tokens.end(), [&first](const Token& token) {
    return token.depth < first->depth;  // a bracket has the depth outside
  });
  const std::size_t begin = offset_in(text, *first);
  return close == tokens.end() ? std::string_view()
                               : text.substr(begin, offset_in(text, *close) - begin);
}

std::string_view comprehension_calling(std::string_view text, std::string_view callee) {
  const std::string_view found = comprehension_in(text);
  const std::vector<Token> tokens = tokens_of(text);
  const auto first = std::find_if(tokens.begin(), tokens.end(), [](const Token& token) {
    return token.is("for") && token.depth > 0;
  });
  const auto is_call = [&tokens, callee](std::size_t i) {
    return tokens[i].kind == TokenKind::kName && tokens[i].text == callee &&
           i + 1 < tokens.size() && tokens[i + 1].is("(");
  };
  const auto at = static_cast<std::size_t>(first - tokens.begin());
  bool outside = false;
  for (std::size_t i = 0; i < tokens.size() && at < tokens.size(); ++i) {
    if (!is_call(i)) {
      continue;
    }
    // Within the same brackets: nothing between it and the `for` lies outside of them.
    const auto [low, high] = std::minmax(i, at);
    const bool inside =
        std::all_of(tokens.begin() + static_cast<std::ptrdiff_t>(low),
                    tokens.begin() + static_cast<std::ptrdiff_t>(high),
                    [&first](const Token& token) { return token.depth >= first->depth; });
    if (inside) {
      return found;
    }
    outside = true;
  }
  return outside ? std::string_view() : found;
}

std::vector<std::string_view> variables_asked(std::string_view text) {
  const std::vector<Token> tokens = tokens_of(text);
  std::vector<std::string_view> out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].is("environ") && !tokens[i].is("getenv")) {
      continue;
    }
    // environ["X"], environ.get("X", getenv("X": the string follows within three tokens.
    std::size_t next = i + 1;
    while (next < tokens.size() && next <= i + 4 && tokens[next].kind != TokenKind::kString &&
           (tokens[next].is(".") || tokens[next].is("get") || tokens[next].is("(") ||
            tokens[next].is("["))) {
      ++next;
    }
    if (next > i + 1 && next < tokens.size() && tokens[next].kind == TokenKind::kString) {
      out.push_back(without_quotes(tokens[next].text));
    }
    std::size_t before = i;
    while (before >= 2 && tokens[before - 1].is(".")) {
      before -= 2;
    }
    if (before >= 2 && tokens[before - 1].is("in")) {
      const std::size_t asked = before - (tokens[before - 2].is("not") ? 3 : 2);
      if (asked < tokens.size() && tokens[asked].kind == TokenKind::kString) {
        out.push_back(without_quotes(tokens[asked].text));
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::python_source
