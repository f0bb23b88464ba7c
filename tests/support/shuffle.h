// SPDX-License-Identifier: Apache-2.0
// The same job told otherwise: ranks numbered anew, everything listed in another order. What is
// found must not depend on either.
#pragma once

#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::tests {

/// Every rank r of a world of n becomes n - 1 - r, wherever a rank is named as a value.
model::JobModel renumbered(model::JobModel job);
model::RankSet renumbered(const model::RankSet& ranks, int world_size);

/// Processes (parents still before children), groups, calls and facts in the opposite order.
model::JobModel listed_backwards(model::JobModel job);

/// Whether a number makes a difference: the user's source or a log speaks of ranks by number, or
/// the ranks look for rank 0's store.
bool numbers_matter(const model::JobModel& job);

}  // namespace ddpdoctor::tests
