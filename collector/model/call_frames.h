// SPDX-License-Identifier: Apache-2.0
// The frames of the newest recorded calls, and of calls that a log tells with a traceback, with
// those of frameworks: CollectiveCall::callers has the user's only. Stored as facts of kind
// "call-frames", so recordings carry them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

inline constexpr std::string_view kCallFrames = "call-frames";

/// The id of a group by its index in a recording.
using GroupId = std::string (*)(const sources::Recording& recording, std::size_t index);

/// The newest call in each group, and the newest ones before it that came from other frames, if a
/// framework made them: rank, group, sequence, frames ("line function file", innermost first). The
/// recording must be of a rank.
std::vector<Fact> newest_frames(const sources::Recording& recording, GroupId group_id);

/// Such a fact of one call; `frames` are innermost first, and those of other files are left out.
Fact frames_fact(Rank rank, const std::string& group, std::int64_t sequence,
                 const std::vector<CallSite>& frames);

/// The frames of the user and of frameworks in such a fact, innermost first.
std::vector<CallSite> frames_in(const Fact& fact);

/// Those of one call; empty if they are not known.
std::vector<CallSite> frames_of_call(const JobModel& job, Rank rank, const std::string& group,
                                     std::int64_t sequence);

}  // namespace ddpdoctor::model
