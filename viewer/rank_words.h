// SPDX-License-Identifier: Apache-2.0
// Sets of ranks in words.
#pragma once

#include <string>

#include "collector/model/rank_set.h"

namespace ddpdoctor::viewer {

/// "rank 3", "ranks 0-2,5", with a constant step "ranks 517-765 step 8"; more than 48 characters
/// become "1,023 ranks".
std::string rank_words(const model::RankSet& ranks);

}  // namespace ddpdoctor::viewer
