// SPDX-License-Identifier: Apache-2.0
// Dumps that were pasted: indented as a code block of Markdown, quoted with "> " in a mail or a
// comment. What stands before each line then is not the dump's own indentation.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// The line behind blanks and marks of quotation.
std::string_view behind_margin(std::string_view line);

/// Without the margin that all lines share, and without that of each pasted dump: what stands
/// before its first line is taken off it and off the lines around it that have the same. Nothing
/// when the text has no such margin.
std::optional<std::string> without_margins(std::string_view text);

}  // namespace ddpdoctor::imports
