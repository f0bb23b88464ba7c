// SPDX-License-Identifier: Apache-2.0
// Untrusted text → a JSON document, or one sentence that says what is wrong with it.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace ddpdoctor::imports {

/// Refuses what is too large, too deep, cut or no JSON; never throws. `name` is the file for
/// messages.
base::Result<nlohmann::json> parse_json(std::string_view text, const std::string& name);

/// The text is one whole document that parse_json takes.
bool is_json(std::string_view text);

}  // namespace ddpdoctor::imports
