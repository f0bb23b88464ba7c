// SPDX-License-Identifier: Apache-2.0
// Functions that only pass on what they are given: `def put(self, tensor, peer): dist.send(tensor,
// peer)`.
#pragma once

#include <string_view>

#include "collector/program/source_text.h"

namespace ddpdoctor::program {

/// The statement at `line` has one call, and what that call gets are parameters of the function
/// around it (`function` as in a frame), attributes of its object, and constants, with at least one
/// parameter: the caller decides.
bool hands_on(const SourceText& text, int line, std::string_view function);

}  // namespace ddpdoctor::program
