// SPDX-License-Identifier: Apache-2.0
// Two processes that write to one pipe: the second one's line begins where the first one's has not
// ended, so that a launcher's label is in the middle of a line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// "in loadnode1:     raise", when nearly every line begins with "node1: ", "node2: " or another
/// such label: a line break before each label that follows a letter, a digit or a closing bracket.
/// A name that the text mentions follows a blank or a sign. Nothing if no line is joined.
std::optional<std::string> without_joined_lines(std::string_view text);

}  // namespace ddpdoctor::imports
