// SPDX-License-Identifier: Apache-2.0
// A JSON text as plain data, of any depth, also one that was cut. It may come from anybody: a trust
// boundary.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/imports/documents/plain_document.h"

namespace ddpdoctor::imports {

/// Reads into `out`, which is cleared first. A text that ends too early is not refused: what had
/// come is there, and `out.cut` is set. `name` is the file for messages.
base::Result<void> read_plain_json(std::string_view text, const std::string& name,
                                   PlainDocument& out);

}  // namespace ddpdoctor::imports
