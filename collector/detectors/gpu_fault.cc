// SPDX-License-Identifier: Apache-2.0
// gpu-fault: the hardware or its driver failed: an Xid in the kernel log, an ECC error, a GPU that
// fell off the bus. Its rank stops, the others spin in NCCL. Many Xids are the program's own error
// or only follow another Xid: these accuse no GPU.
#include <algorithm>
#include <iterator>
#include <set>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/gpu_events.h"
#include "collector/detectors/evidence/kernel_waits.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors::gpu_fault {
namespace {

constexpr std::string_view kKind = "gpu-fault";
constexpr std::size_t kMostLines = 8;

/// The GPU itself, its links or its driver failed.
bool is_serious(const GpuEvent& event) {
  return event.speaks_of >= XidClass::kDriver;
}

/// The earliest serious event; else the earliest of the worst class.
const GpuEvent& leading(const std::vector<GpuEvent>& events) {
  const auto serious = std::find_if(events.begin(), events.end(), is_serious);
  return serious != events.end() ? *serious
                                 : *std::max_element(events.begin(), events.end(),
                                                     [](const GpuEvent& a, const GpuEvent& b) {
                                                       return a.speaks_of < b.speaks_of;
                                                     });
}

/// "GPU 0000:4f:00.0 of node5"; unknown parts are omitted.
std::string gpu_text(const GpuEvent& event) {
  std::string out = event.address.empty() ? "a GPU" : "GPU " + event.address;
  return event.host.empty() ? out : out + " of " + event.host;
}

/// "GPU 0000:4f:00.0 (rank 2)".
std::string gpu_of_rank(const GpuEvent& event) {
  return gpu_text(event) + (event.rank ? fmt::format(" (rank {})", *event.rank) : std::string());
}

std::string what_happened(const GpuEvent& event) {
  if (event.queried) {
    return fmt::format("nvidia-smi cannot reach {}; the GPU may be lost", gpu_of_rank(event));
  }
  switch (event.speaks_of) {
    case XidClass::kApplication:
      return fmt::format("a program on {} caused {}; that is rarely a fault of the GPU",
                         gpu_of_rank(event), event.what);
    case XidClass::kCleanup:
      return fmt::format("the driver removed {} from {} (Xid {}); no line says why",
                         event.pid == 0 ? std::string("a process's channels")
                                        : fmt::format("the channels of process {}", event.pid),
                         gpu_of_rank(event), event.xid);
    case XidClass::kNotice:
      return fmt::format("{} noted {}; that alone stops no program", gpu_of_rank(event),
                         event.what);
    case XidClass::kUnknown:
    case XidClass::kDriver:
    case XidClass::kLink:
    case XidClass::kHardware:
      break;
  }
  return fmt::format("{} reported {}", gpu_of_rank(event), event.what);
}

/// "; 3 other GPUs reported faults, too".
std::string others_too(const std::vector<GpuEvent>& events, const GpuEvent& lead) {
  std::set<std::string> others;
  for (const GpuEvent& event : events) {
    if (is_serious(event) && !event.address.empty() && gpu_text(event) != gpu_text(lead)) {
      others.insert(gpu_text(event));
    }
  }
  return others.empty()      ? std::string()
         : others.size() > 1 ? fmt::format("; {} other GPUs reported faults, too", others.size())
                             : fmt::format("; {} reported a fault, too", *others.begin());
}

std::string fix_for(const GpuEvent& event) {
  constexpr std::string_view kHere = "this node";
  std::string out(remedy(event.queried ? XidClass::kHardware : event.speaks_of));
  const std::size_t at = out.find(kHere);
  if (at != std::string::npos && !event.host.empty()) {
    out.replace(at, kHere.size(), event.host);
  }
  return out;
}

void add_lines(const std::vector<GpuEvent>& events, Finding& finding) {
  for (const GpuEvent& event : events) {
    if (finding.evidence.size() < kMostLines) {
      finding.evidence.push_back(
          {.rank = event.rank, .text = (event.of_kernel ? "kernel: " : "log: ") + event.line});
    }
  }
}

void add_details(const GpuEvent& event, Finding& finding) {
  if (!event.address.empty()) {
    finding.details["gpu"] = event.address;
  }
  if (!event.host.empty()) {
    finding.details["host"] = event.host;
  }
  if (event.xid != 0) {
    finding.details["xid"] = event.previous != 0 ? event.previous : event.xid;
  }
}

Findings detect(const graph::Examination& examination) {
  Findings findings = findings_from_text(examination, kKind);
  const std::vector<GpuEvent> events = gpu_events(examination.job);
  if (events.empty()) {
    Findings waits = findings_of_kernel_waits(examination, kKind, KernelPart::kGpu);
    std::move(waits.begin(), waits.end(), std::back_inserter(findings));
    return findings;
  }
  const GpuEvent& lead = leading(events);
  Finding finding;
  finding.kind = kKind;
  for (const GpuEvent& event : events) {
    if (event.rank && event.speaks_of == lead.speaks_of) {
      finding.culprits.insert(*event.rank);
    }
  }
  finding.confidence = is_serious(lead) && !outlived(examination, std::nullopt)
                           ? Confidence::kLikely
                           : Confidence::kPossible;
  add_where_accused_stand(examination, finding);
  add_waiting(examination, finding);
  finding.summary =
      what_happened(lead) +
      (is_serious(lead) ? others_too(events, lead) + and_who_waits(finding) : std::string());
  finding.fix = fix_for(lead);
  add_details(lead, finding);
  add_lines(events, finding);
  findings.push_back(std::move(finding));
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A GPU failed",
    .explanation =
        R"(What you see: one rank stops and the others spin at 100 % GPU and low power; dmesg shows "NVRM: Xid"; nvidia-smi says "Unable to
determine the device handle".

Why: the GPU has an uncorrectable memory error, or a link or the power failed, or the driver lost the device.

How ddpdoctor knows: from the kernel log and from messages of nvidia-smi and CUDA. NVIDIA's catalogue lists the source of each Xid: an
Xid of memory, the bus, NVLink or the driver is likely the cause. Xids that a program causes (13, 31, 43, 69), and those that only
report a clean-up (45) or give information (63, 92, 154), are possible at most; Xid 45 names the Xid before it. A fatal error
of the PCIe link (AER) counts if the kernel names the GPU; corrected errors do not count.

Fix: drain the node, then
    $ nvidia-smi -q -d ECC,PAGE_RETIREMENT
    $ dcgmi diag -r 3)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::gpu_fault
