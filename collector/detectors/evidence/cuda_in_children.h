// SPDX-License-Identifier: Apache-2.0
// What CUDA answers in a child that was forked after its parent had started CUDA, if torch did not
// notice the fork itself: "initialization error".
#pragma once

#include <string>
#include <vector>

#include "collector/detectors/evidence/suspects.h"

namespace ddpdoctor::detectors {

/// Children in the logs that raised this error, or one that aborted after it had printed it.
struct FailedChildren {
  std::string subject;  // "a child process", "DataLoader worker 617"
  std::vector<Suspect> suspects;
};
FailedChildren cuda_failed_in_children(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
