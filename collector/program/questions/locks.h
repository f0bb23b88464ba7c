// SPDX-License-Identifier: Apache-2.0
// The locks that are held on a line according to the source.
#pragma once

#include <string>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The expressions that a `with` or `.acquire()` around `line` entered, outermost first. The caller
/// knows from the waiting thread whether it is a lock.
std::vector<std::string> locks_held(const SourceText& text, int line);

}  // namespace ddpdoctor::program
