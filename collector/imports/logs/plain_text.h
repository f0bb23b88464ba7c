// SPDX-License-Identifier: Apache-2.0
// Output that was meant for a terminal or marked up by a CI system → lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// Without colours and other sequences of a terminal, also where the escape itself was lost in
/// copying ("[36m(Worker pid=7)[0m"). Nothing when the text has none.
std::optional<std::string> without_colours(std::string_view text);

/// Without colours, progress bars and section markers; what several processes wrote into one line,
/// and what a carriage return parts, stands on lines of its own, each with what the CI put before
/// it. Nothing when the text has none of that.
std::optional<std::string> plain_text(std::string_view text);

}  // namespace ddpdoctor::imports
