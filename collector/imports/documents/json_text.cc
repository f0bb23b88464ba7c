// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/json_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "collector/imports/documents/json_scanner.h"

namespace ddpdoctor::imports {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = std::size_t{512} << 20;
/// Our own documents have ten levels. Reading does not recurse, but building a tree does.
constexpr std::size_t kMaxDepth = 64;

/// Sixteen million values hold the calls of a thousand ranks.
constexpr std::size_t kMostValues = std::size_t{1} << 24U;

base::Error error_of(const JsonEnd& end, std::string_view text, const std::string& name) {
  const std::string_view rest = text.substr(end.position);
  switch (end.reason) {
    case JsonEnd::Reason::kTooDeep:
      return {.what = fmt::format("{} nests deeper than {} levels at byte {}", name, kMaxDepth,
                                  end.position),
              .hint = {}};
    case JsonEnd::Reason::kTooMany:
      return {
          .what = fmt::format("{} has more than {} million values", name, kMostValues / 1'000'000),
          .hint = "give ddpdoctor the files of fewer ranks at a time"};
    case JsonEnd::Reason::kTooLargeNumber: {
      const std::string_view number = rest.substr(0, rest.find_first_of(",]} \t\r\n"));
      return {.what = fmt::format("{} cannot be read: the number {} near byte {} is too large",
                                  name, base::elide(base::printable(number), 40), end.position),
              .hint = {}};
    }
    default:
      break;
  }
  if (rest.empty()) {
    return {
        .what = fmt::format("{} cannot be read: it ends in the middle of the JSON document", name),
        .hint = {}};
  }
  const auto line =
      1 + std::count(text.begin(), text.end() - static_cast<std::ptrdiff_t>(rest.size()), '\n');
  return {.what = fmt::format("{} cannot be read: it is not valid JSON near byte {} (line {})",
                              name, end.position, line),
          .hint = {}};
}

}  // namespace

base::Result<PlainDocument> read_json(std::string_view text, const std::string& name) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    return base::failure(fmt::format("{} is empty", name));
  }
  if (text.size() > kMaxBytes) {
    return base::failure(
        fmt::format("{} is larger than {}", name, base::bytes(static_cast<double>(kMaxBytes))));
  }
  PlainDocument document;
  const JsonEnd end = scan_json(text, {.depth = kMaxDepth, .values = kMostValues}, document);
  if (end.reason != JsonEnd::Reason::kComplete) {
    return tl::make_unexpected(error_of(end, text, name));
  }
  return document;
}

json tree_of(const PlainDocument& document, const PlainValue& value) {
  const auto items = document.items(value);
  switch (value.kind) {
    case PlainValue::Kind::kFlag:
      return value.whole != 0;
    case PlainValue::Kind::kWhole:
      return value.whole < 0 ? json(value.whole) : json(static_cast<std::uint64_t>(value.whole));
    case PlainValue::Kind::kNumber:
      return value.number;
    case PlainValue::Kind::kText:
      return value.as_text();
    case PlainValue::Kind::kList: {
      json out = json::array();
      for (const PlainValue& item : items) {
        out.push_back(tree_of(document, item));
      }
      return out;
    }
    case PlainValue::Kind::kDict: {
      json out = json::object();
      for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        out[std::string(items[i].as_text())] = tree_of(document, items[i + 1]);
      }
      return out;
    }
    default:
      return nullptr;
  }
}

base::Result<json> parse_json(std::string_view text, const std::string& name) {
  const PlainDocument document = TRY(read_json(text, name));
  return tree_of(document, document.root);
}

bool is_json(std::string_view text) {
  return read_json(text, "text").has_value();
}

}  // namespace ddpdoctor::imports
