// SPDX-License-Identifier: Apache-2.0
// One process that drives several GPUs: all ranks of its communicators are in it.
#pragma once

#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

/// The recordings, in which a process of several devices that is the whole job is one recording per
/// device, whose rank is the device's. Beside other ranks each device's groups get a name of their
/// own, because devices are no ranks of that job.
std::vector<sources::Recording> by_device(const std::vector<sources::Recording>& recordings);

/// What is known of the recording's process as another rank, for it stands for one per device;
/// nothing (pid 0) when this is the first.
Process seen_for_another_device(const std::vector<Process>& processes,
                                const sources::Recording& recording);

/// A rank that is a device is not where the threads of other devices are. Once all ranks are there.
void keep_own_threads(std::vector<Process>& processes,
                      const std::vector<sources::Recording>& recordings);

/// Whether there is anything for by_device to do.
bool drives_devices(const sources::Recording& recording);

}  // namespace ddpdoctor::model
