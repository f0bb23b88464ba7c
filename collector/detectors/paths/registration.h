// SPDX-License-Identifier: Apache-2.0
// Callbacks, handlers and strategies: the line that runs them is the same on all ranks, and the
// line that registered them is under a test of the rank.
#pragma once

#include <optional>

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// The test of the rank under which a function on one side of the fork, or its class, was
/// registered; nothing if some place that names it has no such test.
std::optional<Branch> registered_for_ranks(const model::JobModel& job, const Fork& fork);

/// A line that writes to the log led to `below`, a filter or handler of the program: its logger
/// decides whether a rank gets there, not a condition below.
bool comes_through_logging(const model::JobModel& job, const model::CallSite& caller,
                           const Path& below);

}  // namespace ddpdoctor::detectors
