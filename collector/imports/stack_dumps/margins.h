// SPDX-License-Identifier: Apache-2.0
// Pasted dumps: indented as a Markdown code block, or quoted with "> " in a mail or comment. The
// prefix of each line is then not the dump's own indentation.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// The line after blanks and quotation marks.
std::string_view behind_margin(std::string_view line);

/// Removes the margin that all lines share, and that of each pasted dump: the text before its first
/// line is removed from it and from adjacent lines that have the same prefix. Nothing if the text
/// has no such margin.
std::optional<std::string> without_margins(std::string_view text);

}  // namespace ddpdoctor::imports
