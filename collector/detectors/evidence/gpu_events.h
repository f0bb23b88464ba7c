// SPDX-License-Identifier: Apache-2.0
// Messages of the kernel's log and of nvidia-smi about GPUs, from facts of a capture or lines of a
// log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/evidence/xids.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// A message about one GPU.
struct GpuEvent {
  XidClass speaks_of = XidClass::kUnknown;
  std::int64_t xid = 0;       // 0 = reported without one
  std::int64_t previous = 0;  // the Xid that preceded this one according to the message; 0 = none
  std::string address;        // "0000:4f:00.0"; empty if no line names it
  std::string host;           // empty if the line names none
  std::string what;           // "Xid 79 (fallen off the bus)"
  std::string line;
  std::optional<model::Rank> rank;
  pid_t pid = 0;
  bool of_kernel = false;  // read by ddpdoctor from the kernel itself
  bool queried = false;    // reported only by nvidia-smi
};

/// The address of a GPU in a line, in the kernel's notation: "0000:4f:00.0" for "GPU0000:4F:00.0",
/// "PCI:0000:4f:00" and "00000000:4F:00.0".
std::string gpu_address(std::string_view line);

/// In the order of facts, then lines.
std::vector<GpuEvent> gpu_events(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
