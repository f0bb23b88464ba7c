// SPDX-License-Identifier: Apache-2.0
// A call that waits inside the libraries of a device (the driver, its runtime, a profiler's hooks),
// from native frames alone: where Python's line is unknown, it is the call that a user can look up.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Where a thread waits in a library: one of a device, or, for a lock, any other.
struct DeviceCall {
  const model::Frame* inside = nullptr;  // the innermost frame of these libraries
  const model::Frame* call = nullptr;    // the function that was called: "cudaGetLastError"
  const model::Frame* caller = nullptr;  // torch's or the program's; nullptr if none has a name
  bool lock = false;                     // it sleeps until a lock is free
};

/// Nothing if the thread waits neither in a library of a device nor for a lock of another library.
std::optional<DeviceCall> device_call_of(const model::Thread& thread);

/// "cudaGetLastError, called by c10d::ProcessGroupNCCL::workCleanupLoop"; empty if no frame has a
/// name.
std::string device_call_said(const DeviceCall& call);

/// " in cudaGetLastError, called by …", after `before`, for a rank whose stack has no line of the
/// program; else empty.
std::string in_which_call(const graph::Standing& standing, std::string_view before = {});

/// For dumps of one moment: a main thread waits for a lock inside the driver, or, at an unknown
/// line, waits in the driver or for a lock of another library. Nothing if a main thread computes.
std::optional<Finding> where_in_driver(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
