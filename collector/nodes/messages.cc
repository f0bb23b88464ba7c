// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/messages.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/base64.h"
#include "base/text.h"

namespace ddpdoctor::nodes {
namespace {

constexpr std::string_view kMark = "ddpdoctor-node/1";
constexpr std::size_t kLongestLine = 16384;
constexpr std::size_t kDataInLine = 6000;  // a multiple of three
constexpr unsigned kSix = 6;
constexpr unsigned kByte = 8;

bool is_plain(char letter) {
  return letter > ' ' && letter < '\x7f' && letter != '%';
}

std::string escaped(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out = text.empty() ? "%" : "";
  for (const char letter : text) {
    if (is_plain(letter)) {
      out += letter;
    } else {
      const auto byte = static_cast<unsigned char>(letter);
      out += {'%', kHex[byte >> 4U], kHex[byte & 15U]};
    }
  }
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    const bool hex = text[i] == '%' && i + 2 < text.size() &&
                     std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    if (hex) {
      out += static_cast<char>(byte);
      i += 2;
    } else if (text[i] != '%') {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::string message_line(std::string_view session, std::string_view word,
                         const std::vector<std::string>& arguments) {
  // The line starts with a line break, because a login shell may have written a partial line before
  // it.
  std::string out =
      "\n" + std::string(kMark) + " " + std::string(session) + " " + std::string(word);
  for (const std::string& argument : arguments) {
    out += " " + escaped(argument);
  }
  return out + "\n";
}

std::optional<Message> read_message(std::string_view line, std::string_view session) {
  const std::size_t at = line.find(kMark);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const auto words = base::split(base::trim(line.substr(at)), ' ');
  if (words.size() < 3 || words[0] != kMark || words[1] != session) {
    return std::nullopt;
  }
  Message out{.word = std::string(words[2]), .arguments = {}};
  for (std::size_t i = 3; i < words.size(); ++i) {
    out.arguments.push_back(unescaped(words[i]));
  }
  return out;
}

std::string data_lines(std::string_view session, std::string_view bytes) {
  std::string out;
  std::size_t parts = 0;
  for (std::size_t at = 0; at < bytes.size(); at += kDataInLine) {
    std::string part;
    base::append_base64(bytes.substr(at, kDataInLine), part);
    out += message_line(session, "data", {part, std::to_string(parts++)});
  }
  return out + message_line(session, "end", {std::to_string(bytes.size()), std::to_string(parts)});
}

std::optional<std::string> decoded(std::string_view base64) {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < base::kBase64.size(); ++i) {
    values[static_cast<unsigned char>(base::kBase64[i])] = static_cast<std::int8_t>(i);
  }
  if (base64.size() % 4 != 0) {
    return std::nullopt;
  }
  std::string out;
  out.reserve(base64.size() / 4 * 3);
  for (std::size_t i = 0; i < base64.size(); i += 4) {
    std::uint32_t group = 0;
    std::size_t count = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::int8_t value = values[static_cast<unsigned char>(base64[i + k])];
      const bool pads = base64[i + k] == '=' && k >= 2;
      if ((value < 0 && !pads) || (value >= 0 && count != k)) {
        return std::nullopt;
      }
      count += value >= 0 ? 1 : 0;
      group = group << kSix | (value >= 0 ? static_cast<unsigned>(value) : 0U);
    }
    for (std::size_t k = 0; k + 1 < count; ++k) {
      out += static_cast<char>(group >> (kByte * (2 - k)) & 0xFFU);
    }
  }
  return out;
}

void Lines::feed(std::string_view bytes, const std::function<void(std::string_view)>& line) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (open_.size() + part.size() > kLongestLine) {
      too_long_ = true;
    }
    if (!too_long_) {
      open_ += part;
    }
    if (end == std::string_view::npos) {
      return;
    }
    if (!too_long_) {
      line(open_);
    }
    open_.clear();
    too_long_ = false;
    bytes.remove_prefix(end + 1);
  }
}

}  // namespace ddpdoctor::nodes
