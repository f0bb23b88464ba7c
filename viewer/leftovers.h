// SPDX-License-Identifier: Apache-2.0
// The output of `ddpdoctor clean`: pure functions of what was found.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collector/leftovers/leftover.h"

namespace ddpdoctor::viewer {

/// A line for each, by kind, with the sum; at most 50 of a kind, the others are counted.
std::string leftovers_text(const std::vector<leftovers::Leftover>& found, std::size_t width);

/// ddpdoctor.clean/1; `removed` are names.
std::string leftovers_json(const std::vector<leftovers::Leftover>& found,
                           const std::vector<std::string>& removed);

/// "3 segments (1.2 GiB), 1 process".
std::string leftovers_sum(const std::vector<leftovers::Leftover>& found);

}  // namespace ddpdoctor::viewer
