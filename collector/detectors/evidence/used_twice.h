// SPDX-License-Identifier: Apache-2.0
// Lines of the user's source that make one backward pass reach a parameter twice: checkpoints that
// run their own backward, and modules that one forward calls several times.
#pragma once

#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// Lines of one kind.
struct UsedTwice {
  std::vector<model::CallSite> places;  // ordered by file and line; empty = the source shows none
  bool by_checkpoint = false;
  std::string module;  // "self.head"
};

/// `message` may name the parameter ("with name block.0.weight"): then only lines of its module
/// count, if there are any. Modules are reported only if there is no such checkpoint.
UsedTwice used_twice(const model::JobModel& job, const std::string& message);

}  // namespace ddpdoctor::detectors
