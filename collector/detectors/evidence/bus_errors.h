// SPDX-License-Identifier: Apache-2.0
// Errors of the PCIe bus that the kernel reports for a GPU (AER, DPC), except corrected
// ones.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/evidence/gpu_events.h"

namespace ddpdoctor::detectors {

/// Reads the lines of one log in order: the severity is on a line above the driver's.
class BusErrors {
 public:
  /// An event if this line names a GPU: its address is not read here.
  std::optional<GpuEvent> read(std::string_view line);

 private:
  enum class Severity { kUnknown, kMild, kFatal };
  Severity severity_ = Severity::kUnknown;
};

/// "nvidia 0000:03:00.0: …": a line about the GPU itself, not about the port above it.
bool is_of_gpu_driver(std::string_view line);

}  // namespace ddpdoctor::detectors
