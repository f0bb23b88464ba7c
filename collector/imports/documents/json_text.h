// SPDX-License-Identifier: Apache-2.0
// Parses untrusted text to a JSON document, or returns one sentence that describes the problem.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace ddpdoctor::imports {

/// Refuses text that is too large, too deeply nested, truncated or not JSON; never throws. `name`
/// is the file name for messages.
base::Result<nlohmann::json> parse_json(std::string_view text, const std::string& name);

/// True if the text is a complete document that parse_json accepts.
bool is_json(std::string_view text);

}  // namespace ddpdoctor::imports
