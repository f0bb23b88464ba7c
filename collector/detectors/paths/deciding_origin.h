// SPDX-License-Identifier: Apache-2.0
// Where the value comes from that leads ranks apart.
#pragma once

#include <string_view>

#include "collector/detectors/paths/source_path.h"
#include "collector/program/origin/origin.h"

namespace ddpdoctor::detectors {

/// Of the branch's condition; unknown where it is no expression (an except clause, a decorator) or
/// no source of it is at hand.
program::Origin origin_of(const model::JobModel& job, const Branch& branch);
program::Origin origin_of(const model::JobModel& job, const Test& test);

/// "clock", "random state", "file system", …: what of the rank's own decides; empty where nothing
/// of its own is known to.
std::string_view decider(program::Source source);

}  // namespace ddpdoctor::detectors
