// SPDX-License-Identifier: Apache-2.0
// Functions of the program that a library calls a number of times that depends on their results:
// the closure of an optimizer with a line search, the function that scipy minimizes, a retried
// function.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

struct Callback {
  model::CallSite where;  // the line that passes it
  std::string caller;     // "self.opt.step"
  std::string called;     // "self.closure"
};

/// The line at `site`, where this thread is, passes the function at the start of `below` to such a
/// library.
std::optional<Callback> callback_below(const model::JobModel& job, const model::Thread& thread,
                                       const model::CallSite& site, const Path& below);

}  // namespace ddpdoctor::detectors
