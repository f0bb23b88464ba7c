// SPDX-License-Identifier: Apache-2.0
// Reads a JSON text of any depth as plain data, even if it is truncated. The text may be untrusted.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "collector/imports/documents/plain_document.h"

namespace ddpdoctor::imports {

/// Reads into `out`, which is cleared first and must not outlive `text`. A truncated text is not
/// refused: `out` contains what preceded the end, and `out.cut` is set. `name` is the file name for
/// messages.
base::Result<void> read_plain_json(std::string_view text, const std::string& name,
                                   PlainDocument& out);

}  // namespace ddpdoctor::imports
