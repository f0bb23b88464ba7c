// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/json_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace ddpdoctor::imports {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{512} << 20;
/// Our own documents have ten levels. The parser does not recurse, but the destruction of a value
/// does.
constexpr int kMaxDepth = 64;

/// A value takes up to forty times the size of its text. Sixteen million values hold the calls of a
/// thousand ranks.
constexpr std::size_t kMostValues = std::size_t{1} << 24U;

struct Outline {
  std::size_t too_deep = std::string_view::npos;  // position at which brackets nest too deeply
  std::size_t values = 0;                         // an upper bound of their number
};

Outline outline(std::string_view text) {
  Outline out;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      ++out.values;
      if (++depth > kMaxDepth) {
        out.too_deep = i;
        return out;
      }
    } else if (c == ']' || c == '}') {
      --depth;
    } else if (c == ',') {
      ++out.values;
    }
  }
  return out;
}

/// Records where the parser failed.
class Fault : public nlohmann::json_sax<json> {
 public:
  bool null() override {
    return true;
  }
  bool boolean(bool) override {
    return true;
  }
  bool number_integer(number_integer_t) override {
    return true;
  }
  bool number_unsigned(number_unsigned_t) override {
    return true;
  }
  bool number_float(number_float_t, const string_t&) override {
    return true;
  }
  bool string(string_t&) override {
    return true;
  }
  bool binary(binary_t&) override {
    return true;
  }
  bool start_object(std::size_t) override {
    return true;
  }
  bool key(string_t&) override {
    return true;
  }
  bool end_object() override {
    return true;
  }
  bool start_array(std::size_t) override {
    return true;
  }
  bool end_array() override {
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token,
                   const json::exception& error) override {
    position_ = position;
    token_ = token;
    too_large_ = error.id == 406;  // out_of_range: a number that no double can represent
    return false;
  }

  [[nodiscard]] std::string sentence(std::string_view text) const {
    if (too_large_) {
      return fmt::format("the number {} near byte {} is too large",
                         base::elide(base::printable(token_), 40), position_);
    }
    if (position_ >= text.size()) {
      return "it ends in the middle of the JSON document";
    }
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(position_), '\n');
    return fmt::format("it is not valid JSON near byte {} (line {})", position_, line);
  }

 private:
  std::size_t position_ = 0;
  std::string token_;
  bool too_large_ = false;
};

}  // namespace

base::Result<nlohmann::json> parse_json(std::string_view text, const std::string& name) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return base::failure(fmt::format("{} is empty", name));
  }
  if (text.size() > kMaxBytes) {
    return base::failure(
        fmt::format("{} is larger than {}", name, base::bytes(static_cast<double>(kMaxBytes))));
  }
  const Outline seen = outline(text);
  if (seen.too_deep != std::string_view::npos) {
    return base::failure(
        fmt::format("{} nests deeper than {} levels at byte {}", name, kMaxDepth, seen.too_deep));
  }
  if (seen.values > kMostValues) {
    return base::failure(
        fmt::format("{} has more than {} million values", name, kMostValues / 1'000'000),
        "give ddpdoctor the files of fewer ranks at a time");
  }
  json document = json::parse(text.begin(), text.end(), nullptr, false);
  if (document.is_discarded()) {
    Fault fault;
    json::sax_parse(text.begin(), text.end(), &fault);
    return base::failure(fmt::format("{} cannot be read: {}", name, fault.sentence(text)));
  }
  return document;
}

bool is_json(std::string_view text) {
  return parse_json(text, "text").has_value();
}

}  // namespace ddpdoctor::imports
