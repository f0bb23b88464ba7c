// SPDX-License-Identifier: Apache-2.0
// The libraries below torch that compute on a device or move its data: one table for all vendors,
// so that a wait inside one of them means the same on each.
#pragma once

#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// What a library does for the device. A call of the driver or the runtime returns when the device
/// has caught up; a collective library waits for other ranks.
enum class DevicePart { kDriver, kRuntime, kCollectives, kNetwork };

/// A row of the table.
struct DeviceLibraryFile {
  std::string_view module;  // part of the file name
  DevicePart part;
};

/// The library of this native frame; nullptr if it is none below torch.
const DeviceLibraryFile* device_library_of(const Frame& frame);

/// In the driver of a device or in the runtime above it.
bool is_in_driver_or_runtime(const Frame& frame);

/// In the runtime alone: the process that calls it computes on a device.
bool is_in_device_runtime(const Frame& frame);

}  // namespace ddpdoctor::model
