// SPDX-License-Identifier: Apache-2.0
// From NVIDIA's catalogue of Xids: its immediate action decides the class. "Restart the
// application" means the program's own error, unless memory or a link is named.
#include <algorithm>
#include <array>

#include "collector/detectors/evidence/xids.h"

namespace ddpdoctor::detectors {
namespace {

using enum XidClass;

constexpr std::array kXidTable = {
    Xid{8, kDriver, "the GPU stopped processing"},
    Xid{11, kApplication, "invalid commands"},
    Xid{13, kApplication, "exception in a kernel"},
    Xid{25, kApplication, "invalid commands"},
    Xid{31, kApplication, "illegal memory access"},
    Xid{32, kApplication, "invalid commands"},
    Xid{37, kNotice, "firmware notice"},
    Xid{38, kDriver, "firmware watchdog"},
    Xid{39, kApplication, "exception in a copy"},
    Xid{40, kApplication, "exception in a copy"},
    Xid{41, kApplication, "exception in a copy"},
    Xid{43, kApplication, "the program's channel was stopped"},
    Xid{44, kDriver, "fault at a context switch"},
    Xid{45, kCleanup, "channels were removed after an earlier error"},
    Xid{46, kDriver, "the GPU stopped processing"},
    Xid{48, kHardware, "memory error of two bits"},
    Xid{54, kHardware, "power cable"},
    Xid{61, kDriver, "the GPU's controller stopped"},
    Xid{62, kDriver, "the GPU's controller halted"},
    Xid{63, kNotice, "memory was remapped"},
    Xid{64, kHardware, "memory could not be remapped"},
    Xid{66, kNotice, "illegal access by the driver"},
    Xid{67, kNotice, "illegal access by the driver"},
    Xid{68, kApplication, "exception in the video decoder"},
    Xid{69, kApplication, "invalid commands"},
    Xid{70, kApplication, "exception in a copy"},
    Xid{71, kApplication, "exception in a copy"},
    Xid{72, kApplication, "exception in a copy"},
    Xid{74, kLink, "NVLink error"},
    Xid{75, kApplication, "exception in a copy"},
    Xid{76, kApplication, "exception in a copy"},
    Xid{77, kApplication, "exception in a copy"},
    Xid{78, kDriver, "vGPU start"},
    Xid{79, kHardware, "fallen off the bus"},
    Xid{80, kApplication, "corrupted commands"},
    Xid{85, kApplication, "exception in a copy"},
    Xid{92, kNotice, "many corrected memory errors"},
    Xid{93, kNotice, "wear of the InfoROM"},
    Xid{94, kHardware, "contained memory error"},
    Xid{95, kHardware, "uncontained memory error"},
    Xid{106, kNotice, "test message"},
    Xid{107, kNotice, "test message"},
    Xid{109, kDriver, "context switch timed out"},
    Xid{110, kDriver, "security fault"},
    Xid{119, kDriver, "the GPU's system processor did not answer"},
    Xid{120, kDriver, "the GPU's system processor failed"},
    Xid{121, kNotice, "corrected chip-to-chip error"},
    Xid{136, kLink, "NVLink training failed"},
    Xid{137, kApplication, "access to another GPU's memory was refused"},
    Xid{140, kHardware, "memory error that was not recovered"},
    Xid{143, kHardware, "the GPU did not start"},
    Xid{144, kLink, "NVLink error"},
    Xid{145, kLink, "NVLink error"},
    Xid{146, kLink, "NVLink error"},
    Xid{147, kLink, "NVLink error"},
    Xid{148, kLink, "NVLink error"},
    Xid{149, kLink, "NVLink error"},
    Xid{150, kLink, "NVLink error"},
    Xid{154, kNotice, "another action is needed to recover"},
    Xid{155, kLink, "NVLink error"},
    Xid{156, kNotice, "a resource was retired"},
    Xid{157, kHardware, "a resource could not be retired"},
    Xid{158, kHardware, "fatal timeout of the GPU"},
    Xid{160, kNotice, "a channel was retired"},
    Xid{161, kNotice, "a channel could not be retired"},
    Xid{162, kNotice, "power smoothing"},
    Xid{163, kNotice, "power smoothing"},
    Xid{164, kNotice, "power smoothing"},
    Xid{165, kNotice, "power smoothing"},
    Xid{167, kHardware, "fatal timeout of the bus"},
    Xid{171, kHardware, "memory error that cannot be corrected"},
};

}  // namespace

Xid xid(std::int64_t number) {
  const auto* const row = std::find_if(kXidTable.begin(), kXidTable.end(),
                                       [number](const Xid& one) { return one.number == number; });
  return row == kXidTable.end() ? Xid{.number = number, .speaks_of = kUnknown, .what = {}} : *row;
}

std::string_view remedy(XidClass speaks_of) {
  switch (speaks_of) {
    case kHardware:
      return "Drain this node, reboot it, and run `dcgmi diag -r 3`; replace the GPU if the Xid "
             "appears again.";
    case kLink:
      return "Drain this node, run `nvidia-smi nvlink -e`, and reset the GPUs together; check "
             "cables and switches if the Xid appears again.";
    case kDriver:
      return "Drain this node and run `nvidia-smi --gpu-reset`, or reboot; update the driver if "
             "the Xid appears again.";
    case kApplication:
      return "Run the program under `compute-sanitizer` or with `CUDA_LAUNCH_BLOCKING=1`; suspect "
             "the GPU only if other programs fail there, too.";
    case kCleanup:
      return "Read the lines of `dmesg` before it: the driver cleans up after an earlier Xid, or "
             "after a process that was killed.";
    case kUnknown:
    case kNotice:
      break;
  }
  return "Search NVIDIA's catalogue of Xids for this number before you drain the node.";
}

}  // namespace ddpdoctor::detectors
