// SPDX-License-Identifier: Apache-2.0
// The recorded calls of one rank from one place, cut where another place called in between: what
// came of one pass of a loop, or of one execution of a line.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/detectors/paths/source_path.h"
#include "collector/graph/history.h"

namespace ddpdoctor::detectors {

// Calls read backwards: more than torch's recorder keeps, fewer than a long job makes.
inline constexpr std::size_t kMostRead = 4096;

bool same_path(const Path& a, const Path& b);

/// The same operation with the same numbers.
bool same_content(const model::CollectiveCall& a, const model::CollectiveCall& b);

/// Consecutive calls from one place.
using Run = std::vector<const model::CollectiveCall*>;

/// The calls from this place before `sequence`, oldest first, cut where another place called. The
/// last run ends right before `sequence` or is empty; one whose start is not recorded is left out
/// unless it is the last.
std::vector<Run> runs_from(const graph::Calls& calls, const Path& path, std::int64_t sequence);

/// They begin alike, as far as both go.
bool begins_alike(const Run& a, const Run& b);

/// The shortest stretch of which a run is made, one or several times.
std::size_t period_of(const Run& run);

}  // namespace ddpdoctor::detectors
