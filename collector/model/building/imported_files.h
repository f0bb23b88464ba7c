// SPDX-License-Identifier: Apache-2.0
// The files that a user's Python file imports. The cause of a hang (a registered hook, a started
// thread, a raised exception) is often in a module that is on no stack.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/program/source_text.h"

namespace ddpdoctor::model {

/// For each module that `lines` of `file` import, its possible paths, most likely first, by
/// Python's rules as far as they are visible from outside (beside the file, or below a folder
/// around it). Most of these paths do not exist. `file` must be absolute; otherwise the result is
/// empty.
std::vector<std::vector<std::string>> import_candidates(std::string_view file,
                                                        const program::SourceText& lines);

}  // namespace ddpdoctor::model
