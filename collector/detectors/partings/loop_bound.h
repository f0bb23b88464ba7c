// SPDX-License-Identifier: Apache-2.0
// The bound of a loop over a range that is not the same number on all ranks: a step that each rank
// read from its own checkpoint, a length of its own file.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

struct LoopBound {
  std::string name;        // as the header calls it: "start"
  std::string values{};    // "4 on rank 1, 2 on rank 0"; empty = not read
  std::string_view of{};   // "file system": what of the rank's own it comes from; empty = unknown
  model::CallSite from{};  // the line where the slice ends; unknown where it has one line only
};

/// Of the `for` at this line; nothing where its bounds are equal, as far as that is known.
std::optional<LoopBound> unlike_bound(const model::JobModel& job, const model::CallSite& header,
                                      const Parting& parting);

/// The bound, its origin and what to do about it.
void tell_bound(const LoopBound& bound, Finding& finding);

}  // namespace ddpdoctor::detectors
