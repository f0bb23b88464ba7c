// SPDX-License-Identifier: Apache-2.0
// Reads a JSON text into a PlainDocument, in one pass and without recursion: texts without escapes
// are not copied. The text may be untrusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/imports/documents/plain_document.h"

namespace ddpdoctor::imports {

struct JsonLimits {
  std::size_t depth = SIZE_MAX;
  std::size_t values = SIZE_MAX;  // containers and commas
};

/// How the reading ended.
struct JsonEnd {
  enum class Reason : std::uint8_t { kComplete, kNotJson, kTooLargeNumber, kTooDeep, kTooMany };

  Reason reason = Reason::kComplete;
  std::size_t position = 0;  // of the byte that does not fit; the size of the text if it was cut
};

/// Fills `out`, which must be empty and must not outlive `text`. After a fault, `out` contains what
/// preceded the fault.
JsonEnd scan_json(std::string_view text, const JsonLimits& limits, PlainDocument& out);

}  // namespace ddpdoctor::imports
