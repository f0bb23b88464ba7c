// SPDX-License-Identifier: Apache-2.0
// Converts output for terminals or with CI markup to plain lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// Removes colours and other terminal sequences, even if the escape character was lost in copying
/// ("[36m(Worker pid=7)[0m"). Nothing if the text has none.
std::optional<std::string> without_colours(std::string_view text);

/// Removes colours, progress bars and section markers. Splits what several processes wrote into one
/// line, and what a carriage return separates, into lines of its own, each with the CI's prefix.
/// Nothing if the text has none of these.
std::optional<std::string> plain_text(std::string_view text);

}  // namespace ddpdoctor::imports
