// SPDX-License-Identifier: Apache-2.0
// Which locks the source says are held on a line.
#pragma once

#include <string>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// What `with` or `.acquire()` entered around `line`, outermost first. Whether it is a lock,
/// whoever waits for it says.
std::vector<std::string> locks_held(const SourceText& text, int line);

}  // namespace ddpdoctor::program
