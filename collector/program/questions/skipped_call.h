// SPDX-License-Identifier: Apache-2.0
// A loop that takes the next item without a call that belongs to each item: `task_done()`.
#pragma once

#include <optional>
#include <string_view>

#include "collector/program/questions/method_calls.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The test (or `except`) on whose path the function comes back to `line` without a call of
/// `method`, in the function itself or in one that it calls. Nothing if each path has the call, or
/// none.
std::optional<int> comes_back_without(const SourceText& text, const Sources& sources, int line,
                                      std::string_view method);

}  // namespace ddpdoctor::program
