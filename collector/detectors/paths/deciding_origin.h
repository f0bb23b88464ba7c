// SPDX-License-Identifier: Apache-2.0
// The origin of the value that separates the ranks.
#pragma once

#include <string_view>

#include "collector/detectors/paths/source_path.h"
#include "collector/program/origin/origin.h"

namespace ddpdoctor::detectors {

/// For the branch's condition; unknown if it is not an expression (an except clause, a decorator)
/// or its source is unknown.
program::Origin origin_of(const model::JobModel& job, const Branch& branch);
program::Origin origin_of(const model::JobModel& job, const Test& test);

/// "clock", "random state", "file system", …: the rank's own state that decides; empty if none is
/// known.
std::string_view decider(program::Source source);

/// Each rank answers by itself, whatever its data: a draw, the clock, a file, a cache, an
/// exception.
bool is_each_ranks_own(program::Source source);

}  // namespace ddpdoctor::detectors
