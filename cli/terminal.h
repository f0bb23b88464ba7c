// SPDX-License-Identifier: Apache-2.0
// What the terminal behind stdout is and wants.
#pragma once

#include <cstddef>

namespace ddpdoctor::cli {

/// A terminal that shows colour, and nobody who asked for none.
bool colour_wanted();

/// Columns for text: the terminal's between 60 and 140; 100 where stdout is no terminal.
std::size_t text_width();

}  // namespace ddpdoctor::cli
