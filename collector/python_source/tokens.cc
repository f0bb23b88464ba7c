// SPDX-License-Identifier: Apache-2.0
#include "collector/python_source/tokens.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace ddpdoctor::python_source {
namespace {

using std::string_view;

/// A file with more tokens is cut here: the rest has no structure.
constexpr std::size_t kMaxTokens = 1'000'000;
constexpr int kMaxNestedStrings = 4;  // f"{x["a"]}"
constexpr int kTabWidth = 8;          // as CPython's tokenizer

bool is_name_start(char c) {
  const auto u = static_cast<unsigned char>(c);
  return std::isalpha(u) != 0 || c == '_' || u >= 0x80;
}

bool is_name_part(char c) {
  return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_quote(char c) {
  return c == '"' || c == '\'';
}

bool is_string_prefix(string_view word) {
  return word.size() <= 2 && std::all_of(word.begin(), word.end(), [](char c) {
           return string_view("rbfutRBFUT").find(c) != string_view::npos;
         });
}

bool is_formatted(string_view prefix) {
  return prefix.find_first_of("fFtT") != string_view::npos;
}

/// One past the closing quote of a string that ends on this line, or text.size(). `at` is the
/// opening quote.
std::size_t end_of_string(string_view text, std::size_t at, bool formatted, int nesting) {
  const char quote = text[at];
  int braces = 0;
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      ++i;
    } else if (formatted && c == '{') {
      if (braces == 0 && i + 1 < text.size() && text[i + 1] == '{') {
        ++i;
      } else {
        ++braces;
      }
    } else if (formatted && c == '}' && braces > 0) {
      --braces;
    } else if (braces > 0 && is_quote(c) && nesting < kMaxNestedStrings) {
      i = end_of_string(text, i, true, nesting + 1) - 1;
    } else if (c == quote) {
      return i + 1;
    }
  }
  return text.size();
}

std::size_t operator_length(string_view rest) {
  constexpr std::array<string_view, 4> kThree = {"**=", "//=", "<<=", ">>="};
  constexpr std::array<string_view, 19> kTwo = {
      "==", "!=", "<=", ">=", ":=", "->", "**", "//", "<<", ">>",
      "+=", "-=", "*=", "/=", "%=", "@=", "&=", "|=", "^="};
  if (std::find(kThree.begin(), kThree.end(), rest.substr(0, 3)) != kThree.end()) {
    return 3;
  }
  return std::find(kTwo.begin(), kTwo.end(), rest.substr(0, 2)) != kTwo.end() ? 2 : 1;
}

int indent_of(string_view line) {
  int indent = 0;
  for (const char c : line) {
    if (c == ' ') {
      ++indent;
    } else if (c == '\t') {
      indent = (indent / kTabWidth + 1) * kTabWidth;
    } else if (c != '\f') {
      break;
    }
  }
  return indent;
}

/// Turns physical lines into logical ones.
class Scanner {
 public:
  void feed(int number, string_view text) {
    if (number != last_number_ + 1) {
      finish();
    }
    last_number_ = number;
    position_ = 0;
    continued_ = false;
    text_ = text;
    number_ = number;
    if (triple_ != 0 && !close_triple()) {
      return;
    }
    const bool fresh = current_.tokens.empty();
    if (fresh) {
      current_.indent = indent_of(text);
    }
    while (position_ < text_.size() && total_ < kMaxTokens) {
      step();
    }
    if (triple_ == 0 && depth_ == 0 && !continued_) {
      finish();
    }
  }

  std::vector<LogicalLine> take() {
    finish();
    return std::move(done_);
  }

 private:
  void finish() {
    if (!current_.tokens.empty()) {
      current_.first_line = current_.tokens.front().line;
      current_.last_line = std::max(current_.tokens.back().line, last_number_);
      done_.push_back(std::move(current_));
    }
    current_ = {};
    depth_ = 0;
    triple_ = 0;
    continued_ = false;
  }

  void add(TokenKind kind, std::size_t length, int depth) {
    current_.tokens.push_back({.kind = kind,
                               .text = text_.substr(position_, length),
                               .line = number_,
                               .depth = depth,
                               .spaced = spaced_});
    ++total_;
    spaced_ = false;
    position_ = std::min(position_ + length, text_.size());
  }

  /// Looks for the end of a triple-quoted string on this line.
  bool close_triple() {
    for (std::size_t i = 0; i + 2 < text_.size(); ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == triple_ && text_[i + 1] == triple_ && text_[i + 2] == triple_) {
        position_ = i + 3;
        triple_ = 0;
        return true;
      }
    }
    return false;
  }

  void read_string(std::size_t prefix) {
    const std::size_t at = position_ + prefix;
    const char quote = text_[at];
    if (at + 2 < text_.size() && text_[at + 1] == quote && text_[at + 2] == quote) {
      for (std::size_t i = at + 3; i + 2 < text_.size(); ++i) {
        if (text_[i] == '\\') {
          ++i;
        } else if (text_[i] == quote && text_[i + 1] == quote && text_[i + 2] == quote) {
          add(TokenKind::kString, i + 3 - position_, depth_);
          return;
        }
      }
      triple_ = quote;
      add(TokenKind::kString, text_.size() - position_, depth_);
      return;
    }
    const bool formatted = is_formatted(text_.substr(position_, prefix));
    add(TokenKind::kString, end_of_string(text_, at, formatted, 0) - position_, depth_);
  }

  void read_word() {
    std::size_t length = 1;
    while (position_ + length < text_.size() && is_name_part(text_[position_ + length])) {
      ++length;
    }
    const bool quoted = position_ + length < text_.size() && is_quote(text_[position_ + length]);
    if (quoted && is_string_prefix(text_.substr(position_, length))) {
      read_string(length);
    } else {
      add(TokenKind::kName, length, depth_);
    }
  }

  void read_number() {
    std::size_t length = 1;
    while (position_ + length < text_.size() &&
           (is_name_part(text_[position_ + length]) || text_[position_ + length] == '.')) {
      ++length;
    }
    add(TokenKind::kNumber, length, depth_);
  }

  void read_operator() {
    const char c = text_[position_];
    if (c == '(' || c == '[' || c == '{') {
      add(TokenKind::kOperator, 1, depth_++);
    } else if (c == ')' || c == ']' || c == '}') {
      depth_ = std::max(0, depth_ - 1);
      add(TokenKind::kOperator, 1, depth_);
    } else {
      add(TokenKind::kOperator, operator_length(text_.substr(position_)), depth_);
    }
  }

  void step() {
    const char c = text_[position_];
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      spaced_ = true;
      ++position_;
    } else if (c == '#') {
      position_ = text_.size();
    } else if (c == '\\' && text_.find_first_not_of("\\ \t\r\n", position_) == string_view::npos) {
      continued_ = true;
      position_ = text_.size();
    } else if (is_quote(c)) {
      read_string(0);
    } else if (is_name_start(c)) {
      read_word();
    } else if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      read_number();
    } else {
      read_operator();
    }
  }

  std::vector<LogicalLine> done_;
  LogicalLine current_;
  string_view text_;
  std::size_t position_ = 0;
  std::size_t total_ = 0;
  int number_ = 0;
  int last_number_ = 0;
  int depth_ = 0;
  char triple_ = 0;  // the quote of an open triple-quoted string
  bool continued_ = false;
  bool spaced_ = false;
};

bool opens(const Token& token) {
  return token.is("(") || token.is("[") || token.is("{");
}

bool closes(const Token& token) {
  return token.is(")") || token.is("]") || token.is("}");
}

}  // namespace

std::vector<LogicalLine> logical_lines(const Lines& lines) {
  Scanner scanner;
  for (const auto& [number, text] : lines) {
    scanner.feed(number, text);
  }
  return scanner.take();
}

std::vector<Token> tokens_of(std::string_view expression) {
  Scanner scanner;
  scanner.feed(1, expression);
  std::vector<LogicalLine> found = scanner.take();
  return found.empty() ? std::vector<Token>() : std::move(found.front().tokens);
}

std::string text_of(Tokens tokens) {
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (i > 0) {
      const bool broken = token.line != tokens[i - 1].line;
      const bool at_bracket = opens(tokens[i - 1]) || closes(token);
      if (broken ? !at_bracket : token.spaced) {
        out += ' ';
      }
    }
    out += token.text;
  }
  return out;
}

std::vector<Tokens> split_at(Tokens tokens, std::string_view separator, int depth) {
  std::vector<Tokens> out;
  while (true) {
    const std::size_t at = find_token(tokens, separator, depth);
    out.push_back(tokens.first(at));
    if (at == tokens.size()) {
      return out;
    }
    tokens = tokens.subspan(at + 1);
  }
}

std::size_t find_token(Tokens tokens, std::string_view word, int depth) {
  const auto found = std::find_if(tokens.begin(), tokens.end(), [&](const Token& token) {
    return token.depth == depth && token.is(word);
  });
  return static_cast<std::size_t>(found - tokens.begin());
}

std::vector<NameChain> name_chains(Tokens tokens) {
  std::vector<NameChain> out;
  for (std::size_t i = 0; i < tokens.size();) {
    if (tokens[i].kind != TokenKind::kName) {
      ++i;
      continue;
    }
    NameChain chain;
    chain.begin = i;
    chain.words.push_back(tokens[i].text);
    ++i;
    while (i + 1 < tokens.size() && tokens[i].is(".") && tokens[i + 1].kind == TokenKind::kName) {
      chain.words.push_back(tokens[i + 1].text);
      i += 2;
    }
    chain.end = i;
    out.push_back(std::move(chain));
  }
  return out;
}

}  // namespace ddpdoctor::python_source
