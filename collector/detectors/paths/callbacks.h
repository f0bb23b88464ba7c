// SPDX-License-Identifier: Apache-2.0
// Functions of the program that a library calls as often as it decides by what they return: the
// closure of an optimizer with a line search, the function that scipy minimizes, what is retried.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

struct Callback {
  model::CallSite where;  // the line that hands it over
  std::string caller;     // "self.opt.step"
  std::string called;     // "self.closure"
};

/// The line at `site`, where this thread stands, hands the function that `below` begins with to
/// such a library.
std::optional<Callback> callback_below(const model::JobModel& job, const model::Thread& thread,
                                       const model::CallSite& site, const Path& below);

}  // namespace ddpdoctor::detectors
