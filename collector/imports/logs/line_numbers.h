// SPDX-License-Identifier: Apache-2.0
// The numbers that an editor, `cat -n` or a CI system writes before the lines of a log.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// The text without its column of line numbers ("[17] text", "17: text", "17| text", "
/// 17<tab>text"); nothing unless every line has the number that follows the one above it.
std::optional<std::string> without_line_numbers(std::string_view text);

}  // namespace ddpdoctor::imports
