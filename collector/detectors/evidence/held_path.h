// SPDX-License-Identifier: Apache-2.0
// The path of the file that a function checks or opens, read from a local or an attribute.
#pragma once

#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct HeldPath {
  std::string expression;  // "self.path"
  std::string path;
};

/// The path held by the innermost user function on the thread that passes it to a call which
/// checks, creates or locks a file. Returns nothing if that function holds several such paths.
std::optional<HeldPath> held_path(const model::JobModel& job, const model::Process& process,
                                  const model::Thread& thread);

}  // namespace ddpdoctor::detectors
