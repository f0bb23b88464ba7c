// SPDX-License-Identifier: Apache-2.0
// Words for the lock that a thread waits for, and the code that asked for it.
#pragma once

#include <string>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// CPython's function that waits for the lock of a file with a buffer, as lock_taker() names it.
inline constexpr std::string_view kTakerOfBuffer = "_enter_buffered_busy";

/// The function that takes the lock: "__internal_atexit"; "the GIL"; empty if no native frame shows
/// it.
std::string lock_taker(const model::Thread& thread);

/// "the lock self.lock", "the lock of a logging handler", "an import lock", "a lock".
std::string lock_name(const model::JobModel& job, const model::Thread& thread);

/// The innermost Python line outside the standard library's code of locks; nullptr if there is
/// none.
const model::Frame* asking_line(const model::Thread& thread);

/// The first function outside the interpreter: "uwsgi_python_master_fixup" wants the GIL.
const model::Frame* asking_function(const model::Thread& thread);

}  // namespace ddpdoctor::detectors
