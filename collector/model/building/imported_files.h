// SPDX-License-Identifier: Apache-2.0
// Which files a Python file of the user's imports: what decides about a hang (who registers a hook,
// who starts a thread, who raises) often stands in a module that is on nobody's stack.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::model {

/// For each module that `lines` of `file` import: where it may lie, the likeliest first, by
/// Python's rules as far as they can be known from outside (beside the file, or below one of the
/// folders around it). Most of the paths do not exist. `file` must be absolute; otherwise there are
/// none.
std::vector<std::vector<std::string>> import_candidates(std::string_view file,
                                                        const program::SourceText& lines);

}  // namespace ddpdoctor::model
