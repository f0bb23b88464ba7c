// SPDX-License-Identifier: Apache-2.0
// Text in columns: widths as a terminal shows them, wrapping, cutting, colour. All input is
// printable UTF-8.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::viewer {

/// Columns a terminal needs for `text`: East Asian characters take two, combining marks none.
std::size_t display_width(std::string_view text);

/// Makes untrusted text printable and turns its line ends into blanks.
std::string one_line(std::string_view text);

/// Cuts to `width` columns and marks the cut with "…".
std::string fit(std::string_view text, std::size_t width);

/// Appends blanks up to `width` columns.
std::string pad(std::string_view text, std::size_t width);

/// Breaks at blanks into lines of at most `width` columns; a longer word has its own line. At least
/// one line.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

/// The importance of a piece of text, shown by colour if the reader wants colour.
enum class Tone { kPlain, kError, kWarning, kGood, kStrong, kFaint };

/// `text` in the colour of its tone, or unchanged if `colour` is false.
std::string toned(std::string_view text, Tone tone, bool colour);

}  // namespace ddpdoctor::viewer
