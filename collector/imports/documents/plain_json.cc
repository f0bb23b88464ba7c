// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/documents/plain_json.h"

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/documents/json_scanner.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostJsonBytes = std::size_t{512} << 20U;
constexpr std::size_t kMostJsonValues = std::size_t{1} << 26U;

}  // namespace

base::Result<void> read_plain_json(std::string_view text, const std::string& name,
                                   PlainDocument& out) {
  out.clear();
  if (text.size() > kMostJsonBytes) {
    return base::failure(fmt::format("{} is too large: {} of JSON", name,
                                     base::bytes(static_cast<double>(text.size()))));
  }
  const JsonEnd end = scan_json(text, {.values = kMostJsonValues}, out);
  out.cut = end.reason != JsonEnd::Reason::kComplete;
  if (out.cut && end.position < text.size()) {
    return base::failure(
        fmt::format("{} is not JSON: unexpected text at byte {}", name, end.position));
  }
  return {};
}

}  // namespace ddpdoctor::imports
