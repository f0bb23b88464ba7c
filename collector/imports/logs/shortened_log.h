// SPDX-License-Identifier: Apache-2.0
// Keeps the part of a very long log that detectors read.
#pragma once

#include <string>

namespace ddpdoctor::imports {

/// For a very long log, its first and last lines, the informative lines and those around them; if
/// these are still too many, the earliest and the last.
std::string shortened(std::string text);

}  // namespace ddpdoctor::imports
