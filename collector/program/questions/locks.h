// SPDX-License-Identifier: Apache-2.0
// Which locks the source says are held on a line.
#pragma once

#include <string>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// Lock expressions entered by `with` or `.acquire()` around `line`, outermost first.
std::vector<std::string> locks_held(const SourceText& text, int line);

}  // namespace ddpdoctor::program
