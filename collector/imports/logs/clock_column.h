// SPDX-License-Identifier: Apache-2.0
// `torchrun … | ts`, and log services that put a time of day before each line: the labels of ranks
// are behind it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ddpdoctor::imports {

/// The lines without the time of day ("18:11:06.552 ") that nearly all of them begin with, if the
/// label of a rank follows it somewhere. Nothing otherwise: then it is the program's own time.
std::optional<std::string> without_clock_column(std::string_view text);

}  // namespace ddpdoctor::imports
