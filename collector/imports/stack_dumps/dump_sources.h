// SPDX-License-Identifier: Apache-2.0
// py-spy shortens names relative to sys.path ("train.py"). Finds these files on this machine.
#pragma once

#include <span>
#include <string>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Searches the files that a dump names in short form in `folders` and next to the scripts of
/// command lines. A file matches if each of its lines in the dump is in a function with the dumped
/// name; frames then get its full name. A short name of the standard library gets its folder. Reads
/// Python files of at most 2 MB.
void find_short_sources(model::JobModel& job, std::span<const std::string> folders);

}  // namespace ddpdoctor::imports
