// SPDX-License-Identifier: Apache-2.0
// The strings that a statement uses: its own, and those made by the helpers it calls.
#pragma once

#include <string>
#include <vector>

#include "collector/program/origin/origin.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The string literals of the statement at a line, and those that the user's functions called in it
/// return: without quotes; an f-string keeps its braces.
std::vector<std::string> strings_of(const SourceText& text, int line, const Sources& sources);

}  // namespace ddpdoctor::program
