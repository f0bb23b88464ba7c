// SPDX-License-Identifier: Apache-2.0
// The locks that are held and taken on a line according to the source.
#pragma once

#include <string>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The expressions that a `with` or `.acquire()` around `line` entered, outermost first. The caller
/// knows from the waiting thread whether it is a lock.
std::vector<std::string> locks_held(const SourceText& text, int line);

/// The expressions that the line itself takes, in order: what its `with` enters, the object of its
/// `.acquire()`. Without calls, whose results are contexts and seldom locks.
std::vector<std::string> locks_taken(const SourceText& text, int line);

/// The statement of the line is a `with`: a function called from there belongs to a context, unless
/// the suite is on the same line.
bool enters_contexts(const SourceText& text, int line);

}  // namespace ddpdoctor::program
