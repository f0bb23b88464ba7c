// SPDX-License-Identifier: Apache-2.0
// How a JobModel marks what only the words of a log tell.
#pragma once

#include <string_view>

namespace ddpdoctor::model {

/// How Thread::capture ends where the traceback of a rank that gave up waiting is the source.
inline constexpr std::string_view kOfTraceback = "its last traceback";

/// The fact that says how many of the job's calls only a log tells of.
inline constexpr std::string_view kCallsOfLog = "calls-of-log";

}  // namespace ddpdoctor::model
