// SPDX-License-Identifier: Apache-2.0
// Parses untrusted text to a JSON document, or returns one sentence that describes the problem.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "collector/imports/documents/plain_document.h"

namespace ddpdoctor::imports {

/// Refuses text that is too large, too deeply nested, truncated or not JSON; never throws. `name`
/// is the file name for messages. The document must not outlive the text.
base::Result<PlainDocument> read_json(std::string_view text, const std::string& name);

/// The same as a tree of values of its own, which is slower to build and easier to search.
base::Result<nlohmann::json> parse_json(std::string_view text, const std::string& name);

/// A value of a document of read_json as a tree.
nlohmann::json tree_of(const PlainDocument& document, const PlainValue& value);

/// True if the text is a complete document that read_json accepts.
bool is_json(std::string_view text);

}  // namespace ddpdoctor::imports
