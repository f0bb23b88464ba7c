// SPDX-License-Identifier: Apache-2.0
// The path of a file that a function asks for, by the value of its local or attribute.
#pragma once

#include <optional>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

struct HeldPath {
  std::string expression;  // "self.path"
  std::string path;
};

/// Of the innermost function of the user's on a rank's thread that holds one path which its source
/// passes to a call that looks for, makes or locks a file.
std::optional<HeldPath> held_path(const model::JobModel& job, const model::Process& process,
                                  const model::Thread& thread);

}  // namespace ddpdoctor::detectors
