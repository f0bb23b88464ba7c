// SPDX-License-Identifier: Apache-2.0
// One process that drives several GPUs: all ranks of its communicators are in that process.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// Splits the recording of a process with several devices into one recording per device, with the
/// device number as rank, if that process is the whole job. If there are other ranks, only the
/// groups of each device get names of their own, because devices are not ranks of that job.
std::vector<sources::Recording> by_device(const std::vector<sources::Recording>& recordings);

/// The process of this recording as already seen for another rank (it represents one rank per
/// device); pid 0 if this is the first.
Process seen_for_another_device(const std::vector<Process>& processes,
                                const sources::Recording& recording);

/// Removes the threads of other devices from a rank that is a device. Call after all ranks are
/// known.
void keep_own_threads(std::vector<Process>& processes,
                      const std::vector<sources::Recording>& recordings);

/// True if by_device would change the recording.
bool drives_devices(const sources::Recording& recording);

}  // namespace ddpdoctor::model
