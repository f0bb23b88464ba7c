// SPDX-License-Identifier: Apache-2.0
// Finds the bound of a `for … in range(…)` that differs between ranks: a step that each rank read
// from its own checkpoint, or the length of its own file.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

struct LoopBound {
  std::string name;        // as written in the header: "start"
  std::string values{};    // "4 on rank 1, 2 on rank 0"; empty = unknown
  std::string_view of{};   // source of the rank's own value: "file system"; empty = unknown
  model::CallSite from{};  // where its origin ends; unknown if that is the header itself
};

/// The first differing bound of the `for` at this line; nothing if none is known to differ.
std::optional<LoopBound> unlike_bound(const model::JobModel& job, const model::CallSite& header,
                                      const Parting& parting);

/// Adds the bound, its origin and the fix.
void tell_bound(const LoopBound& bound, Finding& finding);

}  // namespace ddpdoctor::detectors
