// SPDX-License-Identifier: Apache-2.0
// The same job in another form: ranks renumbered, everything listed in another order. Findings must
// depend on neither.
#pragma once

#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::tests {

/// Every rank r of a world of n becomes n - 1 - r, wherever a rank is stored as a value.
model::JobModel renumbered(model::JobModel job);
model::RankSet renumbered(const model::RankSet& ranks, int world_size);

/// Processes (parents still before children), groups, calls and facts in the opposite order.
model::JobModel listed_backwards(model::JobModel job);

/// True if the number of a rank matters: the user's source or a log mentions ranks by number, or
/// the ranks search for rank 0's store.
bool numbers_matter(const model::JobModel& job);

}  // namespace ddpdoctor::tests
