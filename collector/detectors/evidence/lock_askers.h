// SPDX-License-Identifier: Apache-2.0
// Who takes a lock file through filelock or torch's FileBaton, and where that library keeps it.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

bool is_of_filelock(std::string_view file);

/// A file of filelock or of torch's baton.
bool is_lock_library(std::string_view file);

/// The function that took the lock: the caller of such a file; nullptr if none is on the stack.
const model::Frame* lock_asker(const model::Thread& thread);

/// "~/.cache/flashinfer/**/*.lock"; empty for an unknown library.
std::string_view home_of_locks(const model::Thread& thread);

}  // namespace ddpdoctor::detectors
