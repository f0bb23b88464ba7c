// SPDX-License-Identifier: Apache-2.0
// Lists of ranks as programs and people write them.
#pragma once

#include <string_view>
#include <vector>

#include "collector/model/rank_set.h"

namespace ddpdoctor::model {

/// The ranks of a written list, in its order.
struct ListedRanks {
  std::vector<Rank> ranks;
  bool whole = true;  // there is nothing else in the text
};

/// "0,2-5", "[0, 1, 2]", "{0, 3}", "0 and 1", "0-8 step 2": items of another form are left out.
ListedRanks listed_ranks(std::string_view text);

}  // namespace ddpdoctor::model
