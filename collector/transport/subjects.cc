// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "collector/transport/transport.h"

namespace ddpdoctor::transport {
namespace {

/// Removes the words before the first dot from `text` and returns them.
std::string_view first_word(std::string_view& text) {
  const std::size_t dot = std::min(text.find('.'), text.size());
  const std::string_view word = text.substr(0, dot);
  text.remove_prefix(std::min(dot + 1, text.size()));
  return word;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view subject) {
  while (!pattern.empty() && !subject.empty()) {
    const std::string_view wanted = first_word(pattern);
    if (wanted == ">" && pattern.empty()) {
      return true;
    }
    const std::string_view word = first_word(subject);
    if (wanted != "*" && wanted != word) {
      return false;
    }
  }
  return pattern.empty() && subject.empty();
}

std::string subject_word(std::string_view text) {
  constexpr std::size_t kLongest = 96;
  std::string out;
  for (const char letter : text.substr(0, kLongest)) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
    out += plain ? letter : '-';
  }
  return out.empty() ? "-" : out;
}

}  // namespace ddpdoctor::transport
