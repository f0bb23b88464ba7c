// SPDX-License-Identifier: Apache-2.0
// fabric-fault: a link, port or switch of the network failed according to NCCL's transport or a
// driver, with adapter, port and both addresses. An exited peer looks the same from the other side,
// so a failed transfer accuses the network only while all ranks are running.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/kernel_waits.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/two_ends.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::fabric_fault {
namespace {

constexpr std::string_view kKind = "fabric-fault";
constexpr std::size_t kLongestLine = 240;
constexpr std::size_t kMostLines = 8;
constexpr double kFlushedStatus = 5;  // a request dropped after an earlier failure

/// The most serious last.
enum class Sort { kNone, kFlushed, kTransfer, kFabricState, kIommu, kSwitch, kDevice, kPort };

Sort sort_of(const model::Fact& fact) {
  const std::string event = fact.text("event").value_or("");
  if (event == "port-down") {
    return Sort::kPort;
  }
  if (event == "device-error") {
    return Sort::kDevice;
  }
  if (event == "switch-error") {
    return Sort::kSwitch;
  }
  if (event == "fabric-state") {
    return Sort::kFabricState;
  }
  if (event == "iommu-fault") {
    return Sort::kIommu;
  }
  if (event == "completion-error") {
    return fact.number("status") == kFlushedStatus ? Sort::kFlushed : Sort::kTransfer;
  }
  return Sort::kNone;
}

/// The adapter refused memory of its own side: no peer that exited causes it.
bool is_local(const model::Fact& fact) {
  constexpr double kProtectionStatus = 4;
  return fact.number("status") == kProtectionStatus;
}

/// "mlx5_3 port 1 on node7"; unknown parts are omitted.
std::string device_text(const model::Fact& fact) {
  std::string out = fact.text("device").value_or("");
  if (const auto port = fact.number("port")) {
    out += fmt::format("{}{} {}", out.empty() ? "" : " ",
                       sort_of(fact) == Sort::kSwitch ? "link" : "port",
                       static_cast<std::int64_t>(*port));
  }
  if (const auto host = fact.text("host"); host && !host->empty()) {
    out += (out.empty() ? "an adapter of " : " on ") + *host;
  }
  return out.empty() ? "an adapter" : out;
}

/// Addresses without ports: "10.0.0.2" of "10.0.0.2<44206>".
std::string address(std::string text) {
  return text.substr(0, text.find('<'));
}

std::set<std::string> ends_of(const model::Fact& fact) {
  std::set<std::string> out;
  for (const char* field : {"host", "local", "peer", "remote"}) {
    if (const auto text = fact.text(field); text && !text->empty()) {
      out.insert(address(*text));
    }
  }
  return out;
}

/// An end that all failed transfers share, if there are at least two different other ends.
std::string common_end(const std::vector<const model::Fact*>& transfers) {
  std::map<std::string, std::size_t> seen;
  std::set<std::pair<std::string, std::string>> pairs;
  for (const model::Fact* fact : transfers) {
    if (const auto host = fact->text("host"); host && !host->empty()) {  // else it repeats a line
      pairs.emplace(*host, address(fact->text("peer").value_or("")));
    }
    for (const std::string& end : ends_of(*fact)) {
      ++seen[end];
    }
  }
  const auto common = std::find_if(seen.begin(), seen.end(), [&transfers](const auto& end) {
    return end.second == transfers.size();
  });
  return common == seen.end() || pairs.size() < 2 ? std::string() : common->first;
}

/// A port that became active again, on the same machine and device.
bool came_back(const model::JobModel& job, const model::Fact& down) {
  const auto all = model::facts(job, "fabric-event");
  return std::any_of(all.begin(), all.end(), [&down](const model::Fact* one) {
    return one->text("event") == "port-up" && one->text("host") == down.text("host") &&
           one->text("device") == down.text("device");
  });
}

/// "03:00.0 and 83:00.0".
std::string refused_devices(const model::JobModel& job) {
  constexpr std::size_t kMost = 8;
  std::set<std::string> devices;
  for (const model::Fact* fact : model::facts(job, "fabric-event")) {
    if (sort_of(*fact) == Sort::kIommu) {
      devices.insert(fact->text("device").value_or(""));
    }
  }
  return devices.size() > kMost ? fmt::format("{} devices", devices.size())
                                : fmt::format("{}", fmt::join(devices, " and "));
}

/// NCCL copies between GPUs directly: such copies are what an IOMMU refuses.
bool copies_between_gpus(const model::JobModel& job) {
  std::set<std::string> refused;  // a copy between two devices needs both
  for (const model::Fact* fact : model::facts(job, "fabric-event")) {
    if (sort_of(*fact) == Sort::kIommu) {
      refused.insert(fact->text("device").value_or(""));
    }
  }
  return refused.size() > 1 &&
         std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
           return log.text.find(" via P2P/") != std::string::npos;
         });
}

std::string what_happened(const model::JobModel& job, const model::Fact& fact,
                          const std::vector<const model::Fact*>& transfers,
                          const std::optional<TwoEnds>& ends) {
  const std::string device = device_text(fact);
  switch (sort_of(fact)) {
    case Sort::kPort:
      return fmt::format("{} went down{}", device, came_back(job, fact) ? " and is up again" : "");
    case Sort::kDevice:
      return fmt::format("{} reported an error of its own", device);
    case Sort::kSwitch:
      return fmt::format("{} reported SXid {}", device,
                         static_cast<std::int64_t>(fact.number("status").value_or(0)));
    case Sort::kIommu:
      return fmt::format("the IOMMU refuses memory accesses of {}", refused_devices(job));
    case Sort::kFabricState:
      return "NVIDIA's driver and the fabric manager disagree about the state of NVLink";
    case Sort::kTransfer:
    case Sort::kFlushed:
    case Sort::kNone:
      break;
  }
  const std::string peer = fact.text("peer") ? address(*fact.text("peer")) : std::string();
  const auto status = fact.number("status");
  const std::string common = !ends && transfers.size() > 1 ? common_end(transfers) : std::string();
  const std::string whose = ends           ? "between " + ends->text()
                            : peer.empty() ? "of " + device
                                           : fmt::format("of {} with {}", device, peer);
  std::string text = fmt::format("transfers {} failed{}", whose,
                                 status == 12   ? " after all retries"
                                 : status == 13 ? " because the receiver was not ready"
                                                : "");
  if (status) {
    const auto vendor = fact.number("vendor_error");
    text +=
        fmt::format(" (status {}{})", static_cast<std::int64_t>(*status),
                    vendor ? fmt::format(", vendor error {}", static_cast<std::int64_t>(*vendor))
                           : std::string());
  }
  return common.empty() ? text : text + "; all failed transfers have one end at " + common;
}

std::string fix_for(const model::Fact& fact) {
  if (sort_of(fact) == Sort::kTransfer && is_local(fact)) {
    return "Set NCCL_NET_GDR_LEVEL=LOC to run without GPUDirect RDMA. If the job then runs, "
           "disable "
           "ACS and the IOMMU on these machines and check nvidia-peermem.";
  }
  const std::string device = fact.text("device").value_or("");
  const std::string host = fact.text("host").value_or("");
  const std::string where = host.empty() ? "that node" : host;
  if (sort_of(fact) == Sort::kIommu) {
    return "Set NCCL_P2P_DISABLE=1, or boot that machine with iommu=pt (Intel: intel_iommu=off) if "
           "these devices are GPUs or network adapters.";
  }
  if (sort_of(fact) == Sort::kFabricState) {
    return fmt::format(
        "Run `nvidia-smi -q | grep -A 4 Fabric` on {}. Then restart the fabric manager (`systemctl "
        "restart nvidia-fabricmanager`) and reset the GPUs, or reboot.",
        where);
  }
  if (sort_of(fact) == Sort::kSwitch) {
    return fmt::format(
        "Drain {} and run `nvidia-smi nvlink -e` there; restart the fabric manager or replace the "
        "link.",
        where);
  }
  if (device.empty()) {
    return fmt::format(
        "Check cable, port and switch between the two addresses; run `ibstat` and `ib_write_bw` on "
        "{}.",
        where);
  }
  return fmt::format(
      "Check cable, port and switch of {} on {} (`ibstat {}`, `ethtool -S`); until it is repaired, "
      "set `NCCL_IB_HCA=^{}` or drain the node.",
      device, where, device, device);
}

void add_lines(const std::vector<const model::Fact*>& facts, Finding& finding) {
  std::set<std::string> sources;
  for (const model::Fact* fact : facts) {
    sources.insert(fact->text("source").value_or(""));
    if (finding.evidence.size() >= kMostLines) {
      continue;
    }
    const bool kernel = fact->text("source") == "kernel";
    const auto count = fact->number("count").value_or(1);
    finding.evidence.push_back(
        {.rank = fact->rank,
         .text =
             fmt::format("{}: {}{}", kernel ? "kernel" : "log",
                         base::elide(fact->text("text").value_or(""), kLongestLine),
                         count > 1 ? fmt::format(" ({} times)", static_cast<std::int64_t>(count))
                                   : std::string())});
  }
  finding.details["sources"] = static_cast<std::int64_t>(sources.size());
}

void add_details(const model::Fact& fact, Finding& finding) {
  for (const char* field : {"event", "device", "host", "peer", "local", "remote"}) {
    if (const auto text = fact.text(field); text && !text->empty()) {
      finding.details[field] = *text;
    }
  }
  for (const char* field : {"port", "status", "vendor_error"}) {
    if (const auto number = fact.number(field)) {
      finding.details[field] = static_cast<std::int64_t>(*number);
    }
  }
}

/// It happened before any process of the job started.
bool is_older_than_job(const model::JobModel& job, const model::Fact& fact) {
  std::optional<double> start;
  const model::Observation* look = model::latest(job);
  for (const model::Process& process :
       look == nullptr ? std::vector<model::Process>() : look->processes) {
    if (process.rank && process.start_time) {
      start = std::min(start.value_or(*process.start_time), *process.start_time);
    }
  }
  const auto time = fact.number("time");
  return start && time && *time < *start;
}

/// The program's own calls explain the hang.
bool ranks_parted(const graph::Examination& examination) {
  return std::any_of(
      examination.groups.begin(), examination.groups.end(),
      [](const graph::GroupView& view) { return view.end_of_agreement() != nullptr; });
}

Confidence confidence_in(const graph::Examination& examination, const model::Fact& worst,
                         const std::set<std::string>& sources) {
  const Sort sort = sort_of(worst);
  const bool mild = sort == Sort::kFlushed || sort == Sort::kFabricState ||
                    (sort == Sort::kSwitch && !worst.flag("fatal").value_or(false));
  const bool of_other_device = sort == Sort::kIommu && !worst.flag("gpu_driver").value_or(false) &&
                               !copies_between_gpus(examination.job);
  const bool of_a_peer =
      sort == Sort::kTransfer && !is_local(worst) && somebody_is_gone(examination);
  // A flap that NCCL did not notice, or a port that it does not use.
  const bool unnoticed =
      !sources.contains("nccl") && (came_back(examination.job, worst) || ranks_parted(examination));
  if (examination.job.progress == model::Progress::kMoving || mild || of_a_peer || unnoticed ||
      of_other_device) {
    return Confidence::kPossible;
  }
  return sources.size() > 1 ? Confidence::kCertain : Confidence::kLikely;
}

/// Messages of NCCL and CUDA about NVLink: the rank that prints them is not at fault.
Findings told_by_libraries(const graph::Examination& examination) {
  Findings findings = without_culprits(findings_from_text(examination, kKind));
  if (auto nvls = findings.empty() ? failed_in_nvls(examination.job, kKind) : std::nullopt) {
    findings.push_back(std::move(*nvls));
  }
  return findings;
}

Findings detect(const graph::Examination& examination) {
  std::vector<const model::Fact*> events;
  for (const model::Fact* fact : model::facts(examination.job, "fabric-event")) {
    if (sort_of(*fact) != Sort::kNone && !is_older_than_job(examination.job, *fact)) {
      events.push_back(fact);
    }
  }
  if (events.empty()) {
    Findings told = findings_of_kernel_waits(examination, kKind, KernelPart::kFabric);
    return told.empty() ? told_by_libraries(examination) : told;
  }
  const auto weaker = [](const model::Fact* a, const model::Fact* b) {
    return sort_of(*a) > sort_of(*b);
  };
  std::stable_sort(events.begin(), events.end(), weaker);
  std::vector<const model::Fact*> transfers;
  std::set<std::string> sources;
  Finding finding;
  finding.kind = kKind;
  for (const model::Fact* fact : events) {
    if (sort_of(*fact) == Sort::kTransfer) {
      transfers.push_back(fact);
    }
    sources.insert(fact->text("source").value_or(""));
    if (fact->rank) {
      finding.waiting.insert(*fact->rank);
    }
  }
  const model::Fact& worst = *events.front();
  finding.confidence = confidence_in(examination, worst, sources);
  finding.waiting = finding.waiting.united(waiting_ranks(examination));
  const auto ends = both_ends(examination.job, transfers);
  finding.summary = what_happened(examination.job, worst, transfers, ends);
  if (sort_of(worst) > Sort::kTransfer && !transfers.empty() && transfers.front()->text("peer")) {
    finding.summary += "; transfers with " + address(*transfers.front()->text("peer")) + " failed";
  }
  if (!finding.waiting.empty()) {
    finding.summary +=
        fmt::format("; {} {} waiting for data", said(finding.waiting), is_or_are(finding.waiting));
  }
  const bool of_link = ends && sort_of(worst) == Sort::kTransfer && !is_local(worst);
  finding.fix = of_link ? ends->fix() : fix_for(worst);
  add_details(transfers.empty() ? worst : *transfers.front(), finding);
  add_details(worst, finding);
  add_lines(events, finding);
  return {finding};
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A link, a port or a switch of the network failed",
    .explanation =
        R"(What you see: all ranks are in one collective and it does not finish, or NCCL ends the job with "unhandled system error"; the log has
"NET/IB : Got completion from peer … status=12", "Got async event : port error", or dmesg has "Link down" or an SXid.

Why: a cable, a port, an adapter or a switch lost packets until the retries were used up, or went down for a moment. NCCL does not
reconnect: one flap is enough.

How ddpdoctor knows: the lines of NCCL's transports and of the kernel's drivers name the adapter, the port and both addresses. Both
sources together are certain; one alone is likely. If both machines of a job report failed transfers, the link between them is
named. A CUDA call that fails in NCCL's setup of NVLink SHARP (nvls.cc) is likely. A failed transfer is only possible if a rank has exited, because that breaks its
connections, too. Also only possible: flushed requests (status 5), switch errors that are not fatal, and a port that only the kernel
reports if the port is up again or the ranks are in different calls. Events older than the job are ignored. An IOMMU that refuses
memory accesses of a device ("DMAR: [DMA Write] Request device") is likely if NCCL copies between GPUs directly (P2P).

Fix: check the link, and exclude it until it is repaired.
    $ ibstat mlx5_3; ethtool -S ens1f0 | grep -i err
    $ NCCL_IB_HCA=^mlx5_3 torchrun ...)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::fabric_fault
