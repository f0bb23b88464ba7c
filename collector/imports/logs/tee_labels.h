// SPDX-License-Identifier: Apache-2.0
// torchrun's --tee puts the local rank before each line: "[default4]: text" on the second of two
// nodes is of rank 12.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddpdoctor::imports {

/// The text with "[rank12]: " instead of "[default4]:", if other lines with such a label name a
/// rank, and the same distance lies between all local ranks and their ranks. nullopt if they are
/// equal or the text has the lines of several nodes.
std::optional<std::string> with_tee_as_ranks(std::string_view text);

}  // namespace ddpdoctor::imports
