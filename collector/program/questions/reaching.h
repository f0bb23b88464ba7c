// SPDX-License-Identifier: Apache-2.0
// What a line shows about the decisions before it: a rank that reached the line left them on the
// way that leads there.
#pragma once

#include <optional>
#include <string_view>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The result of the test at `line` with which `reached` is reached; nothing if both results lead
/// there, or none of a test. `condition`, as written, chooses between several tests of one line; an
/// `else` is at its own line and has the condition of its `if`.
std::optional<bool> result_leading_to(const SourceText& text, int line, std::string_view condition,
                                      int reached);

}  // namespace ddpdoctor::program
