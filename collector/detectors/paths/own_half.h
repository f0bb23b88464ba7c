// SPDX-License-Identifier: Apache-2.0
// A call in two halves: `if rank != 0: barrier()`, the first rank's work, `if rank == 0:
// barrier()`. The test of the rank around the half in which others wait is correct.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// The half of the ranks that do not make the other one.
struct OwnHalf {
  model::CallSite call;
  std::optional<Test> way_out;  // leaves the function between the two
};

/// The call of this operation, further down in the function than `first`, to which a test of the
/// rank leads `ranks` past `first`.
std::optional<OwnHalf> own_half(const model::JobModel& job, const model::CallSite& first,
                                std::string_view operation, const model::RankSet& ranks);

}  // namespace ddpdoctor::detectors
