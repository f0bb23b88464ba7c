// SPDX-License-Identifier: Apache-2.0
#include "collector/program/syntax/open_text.h"

#include <algorithm>

#include "base/text.h"

namespace ddpdoctor::program {
namespace {

constexpr std::size_t kMaxOpen = 200;  // CPython's own limit for nested brackets

/// Offset of the comment, or the line's length; skips strings within the line.
std::size_t comment_of(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\') {
        ++i;
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      return i;
    }
  }
  return line.size();
}

}  // namespace

/// Returns the offset after the string that begins at the quote `at`, or the end of the line.
std::size_t OpenText::skip_string(std::string_view line, std::size_t at) {
  const char quote = line[at];
  const std::string three(3, quote);
  if (line.substr(at, 3) == three) {
    quote_ = quote;
    return at + 3;
  }
  for (std::size_t i = at + 1; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == quote) {
      return i + 1;
    }
  }
  cut_off_ = line.ends_with('\\') ? '\0' : quote;
  return line.size();
}

void OpenText::feed(std::string_view line) {
  continued_ = false;
  cut_off_ = 0;
  for (std::size_t i = 0; i < line.size();) {
    const char c = line[i];
    if (quote_ != 0) {
      if (c == '\\') {
        i += 2;
      } else if (line.substr(i, 3) == std::string(3, quote_)) {
        quote_ = 0;
        i += 3;
      } else {
        ++i;
      }
    } else if (c == '#') {
      return;
    } else if (c == '"' || c == '\'') {
      i = skip_string(line, i);
    } else if (c == '\\' && base::trim(line.substr(i)).size() == 1) {
      continued_ = true;
      return;
    } else {
      if ((c == '(' || c == '[' || c == '{') && brackets_.size() < kMaxOpen) {
        brackets_ += c == '(' ? ')' : c == '[' ? ']' : '}';
      } else if ((c == ')' || c == ']' || c == '}') && !brackets_.empty()) {
        brackets_.pop_back();
      }
      ++i;
    }
  }
}

std::string OpenText::closers() const {
  std::string out = quote_ != 0 ? std::string(3, quote_) : std::string();
  out.append(brackets_.rbegin(), brackets_.rend());
  return out;
}

bool ends_with_colon(std::string_view line) {
  return base::trim(line.substr(0, comment_of(line))).ends_with(':');
}

}  // namespace ddpdoctor::program
