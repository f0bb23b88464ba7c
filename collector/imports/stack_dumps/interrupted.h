// SPDX-License-Identifier: Apache-2.0
// Ctrl-C ends a Python program with a traceback of the place where its main thread was: its stack
// at that moment.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {

/// The stacks of the processes that the newest interrupt in these lines ended, one for each
/// process. Launchers are left out: they wait for their ranks.
std::vector<StackDump> interrupted_stacks(std::span<const std::string_view> lines);

}  // namespace ddpdoctor::imports
