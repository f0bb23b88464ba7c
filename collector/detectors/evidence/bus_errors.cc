// SPDX-License-Identifier: Apache-2.0
// "pcieport 0000:00:03.0: AER: Multiple Uncorrected (Fatal) error received: 0000:00:03.0" (Linux 6:
// "Uncorrectable (Fatal) error message received from …"), "nvidia 0000:03:00.0: AER: can't recover
// (no error_detected callback)". After an error that is not fatal, the GPU may work on.
#include "collector/detectors/evidence/bus_errors.h"

#include <array>
#include <cctype>

#include "base/text.h"

namespace ddpdoctor::detectors {
bool is_of_gpu_driver(std::string_view line) {
  constexpr std::array<std::string_view, 2> kDrivers = {"nvidia ", "amdgpu "};
  for (const std::string_view driver : kDrivers) {
    const std::size_t at = line.find(driver);
    const std::size_t end = at == line.npos ? at : at + driver.size();
    if (end < line.size() && std::isxdigit(static_cast<unsigned char>(line[end])) != 0 &&
        (at == 0 || line[at - 1] == ' ') && !gpu_address(line.substr(end, 16)).empty()) {
      return true;
    }
  }
  return false;
}

std::optional<GpuEvent> BusErrors::read(std::string_view line) {
  const bool speaks = base::contains(line, "AER: ") || base::contains(line, "PCIe Bus Error: ") ||
                      base::contains(line, "DPC: ") ||
                      base::contains(line, "no error_detected callback");
  if (!speaks) {
    return std::nullopt;
  }
  const bool uncorrected = base::contains(line, "Uncorrect");
  if (base::contains(line, "Correct") && !uncorrected) {
    severity_ = Severity::kUnknown;
    return std::nullopt;
  }
  severity_ = base::contains(line, "(Fatal)")       ? Severity::kFatal
              : base::contains(line, "(Non-Fatal)") ? Severity::kMild
                                                    : severity_;
  const bool failed = uncorrected || base::contains(line, "can't recover");
  if (!failed || !is_of_gpu_driver(line)) {
    return std::nullopt;
  }
  GpuEvent event;
  event.speaks_of = severity_ == Severity::kFatal  ? XidClass::kHardware
                    : severity_ == Severity::kMild ? XidClass::kNotice
                                                   : XidClass::kUnknown;
  event.what = severity_ == Severity::kFatal  ? "a fatal error of its PCIe link"
               : severity_ == Severity::kMild ? "an error of its PCIe link that is not fatal"
                                              : "an error of its PCIe link";
  return event;
}

}  // namespace ddpdoctor::detectors
