// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ddpdoctor::imports {

/// For a very long log, its first and last lines, the informative lines and those around them; if
/// these are still too many, the earliest and the last.
std::string shortened(std::string text);

}  // namespace ddpdoctor::imports
