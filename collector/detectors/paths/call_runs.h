// SPDX-License-Identifier: Apache-2.0
// The recorded calls of one rank from one line, separated by calls from other lines: the calls of
// one iteration, or of one execution of the line.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/detectors/paths/source_path.h"
#include "collector/graph/history.h"

namespace ddpdoctor::detectors {

// Number of calls read backwards: more than torch's recorder keeps, fewer than a long job makes.
inline constexpr std::size_t kMostRead = 4096;

bool same_path(const Path& a, const Path& b);

/// The same operation with the same arguments.
bool same_content(const model::CollectiveCall& a, const model::CollectiveCall& b);

/// Consecutive calls from one line.
using Run = std::vector<const model::CollectiveCall*>;

/// The calls from this line before `sequence`, oldest first, separated where another line called.
/// The last run ends directly before `sequence` or is empty; a run whose start is not recorded is
/// omitted unless it is the last.
std::vector<Run> runs_from(const graph::Calls& calls, const Path& path, std::int64_t sequence);

/// The common part of both is equal.
bool begins_alike(const Run& a, const Run& b);

/// The length of the shortest sequence that the run repeats.
std::size_t period_of(const Run& run);

}  // namespace ddpdoctor::detectors
