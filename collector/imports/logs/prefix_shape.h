// SPDX-License-Identifier: Apache-2.0
// Prefixes of launchers that no list contains: nearly every line begins with a prefix of one shape,
// and its variable part identifies the process.
#pragma once

#include <string_view>
#include <vector>

#include "collector/imports/logs/labels.h"

namespace ddpdoctor::imports {

/// "[trainer1|1]: ", "[host|3]: ", "trainer-1 [1]: ", "node0/3: ": text with "[rank1]: " instead.
/// Empty if there is no such prefix, or it counts something else (steps, epochs).
Labels with_shape_as_ranks(const std::vector<std::string_view>& lines);

}  // namespace ddpdoctor::imports
