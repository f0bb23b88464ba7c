// SPDX-License-Identifier: Apache-2.0
// What the kernel's log and nvidia-smi say of GPUs, as facts of a capture or as lines of a log.
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
  std::int64_t xid = 0;       // 0 = told without one
  std::int64_t previous = 0;  // the Xid that this one is said to follow; 0 = none is named
  std::string address;        // "0000:4f:00.0", empty where no line names it
  std::string host;           // empty where the line names none
  std::string what;           // "Xid 79 (fallen off the bus)"
  std::string line;
  std::optional<model::Rank> rank;
  pid_t pid = 0;
  bool of_kernel = false;  // ddpdoctor read it from the kernel itself
  bool queried = false;    // only nvidia-smi says so
};

/// The address of a GPU in a line, as the kernel writes it: "0000:4f:00.0" for "GPU0000:4F:00.0",
/// "PCI:0000:4f:00" and "00000000:4F:00.0".
std::string gpu_address(std::string_view line);

/// In the order of facts and lines.
std::vector<GpuEvent> gpu_events(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
