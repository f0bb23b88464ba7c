// SPDX-License-Identifier: Apache-2.0
// Properties of the terminal behind stdout.
#pragma once

#include <cstddef>

namespace ddpdoctor::cli {

/// True for a terminal with colour, unless the user disabled it.
bool colour_wanted();

/// Columns for text: the terminal's width between 60 and 140; 100 if stdout is not a terminal.
std::size_t text_width();

}  // namespace ddpdoctor::cli
