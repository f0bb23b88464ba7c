// SPDX-License-Identifier: Apache-2.0
// In the forms of NCCL 2.4 – 2.32 (transport/net_ib.cc, its plugins, net_socket.cc), mlx5_core,
// mlx4_core, the bonding driver and nvidia-nvswitch.
#include "collector/imports/logs/fabric_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/logs/nccl_ranks.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kLongestText = 400;  // characters kept of a line
constexpr std::size_t kLongestWord = 128;  // a host, an address, a device
// Events of one log; further ones of a known kind are only counted.
constexpr std::size_t kMostEvents = 256;

std::string word_behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = text.substr(at + word.size());
  return base::printable(rest.substr(0, std::min(rest.find_first_of(" ,\t"), kLongestWord)));
}

/// Also the one in "IBV_WC_RETRY_EXC_ERR(12)" behind the word.
std::optional<std::int64_t> number_or_code(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) {
    return std::nullopt;
  }
  const auto number = number_behind(text, word, INT32_MAX);
  const std::string_view rest = text.substr(at + word.size());
  return number ? number : number_or_code(rest.substr(0, rest.find(' ')), "(");
}

void put(model::Fact& fact, const char* field, std::string value) {
  if (!value.empty()) {
    fact.fields[field] = std::move(value);
  }
}

void put(model::Fact& fact, const char* field, std::optional<std::int64_t> value) {
  if (value) {
    fact.fields[field] = *value;
  }
}

model::Fact event(std::string_view kind, std::string_view source, std::string_view text) {
  model::Fact fact{.rank = {}, .pid = {}, .kind = "fabric-event", .fields = {}};
  fact.fields["event"] = std::string(kind);
  fact.fields["source"] = std::string(source);
  fact.fields["text"] = base::elide(base::printable(base::trim(text)), kLongestText);
  return fact;
}

/// "mlx5_0:1 Got async event", "… hca mlx5_0": device and port.
void put_device(std::string_view text, std::string_view before, model::Fact& fact) {
  std::string_view device =
      base::trim(before.substr(std::min(before.rfind(": ") + 2, before.size())));
  const std::size_t colon = device.find(':');
  const auto port = colon == device.npos ? std::nullopt : number_of(device.substr(colon + 1), 255);
  device = device.substr(0, colon);
  const bool named =
      !device.empty() && device.size() <= kLongestWord && !base::contains(device, " ");
  put(fact, "device", named ? base::printable(device) : word_behind(text, " hca "));
  put(fact, "port", port);
}

/// "NET/IB : Got completion from peer 10.0.0.2<44206> with status=12 opcode=1 len=0 vendor err 129
/// (Send) localGid A remoteGids B hca mlx5_3"; "with error 12" before 2.19.
std::optional<model::Fact> completion(std::string_view text) {
  std::size_t at = text.find("Got completion from peer ");
  at = at == text.npos ? text.find("Got completion with error ") : at;  // before 2.7
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  model::Fact fact = event("completion-error", "nccl", text);
  put(fact, "peer", word_behind(text, "Got completion from peer "));
  auto status = number_or_code(text, "with status=");
  status = status ? status : number_or_code(text, "with error ");
  put(fact, "status", status);
  auto vendor = number_or_code(text, "vendor err ");
  vendor = vendor ? vendor : number_or_code(text, "vendor_err=");
  put(fact, "vendor_error", vendor);
  put(fact, "local", word_behind(text, "localGid "));
  const std::string remote = word_behind(text, "remoteGids");
  put(fact, "remote", remote.empty() ? word_behind(text, "remoteGids ") : remote);
  put_device(text, text.substr(0, at), fact);
  return fact;
}

/// "NET/IB : mlx5_0:1 Got async event : port error"; a port that becomes active again is an event,
/// too.
std::optional<model::Fact> async_event(std::string_view text) {
  std::size_t at = text.find("Got async event : ");
  at = at == text.npos ? text.find("async fatal event") : at;
  at = at == text.npos ? text.find("Got async error event") : at;
  at = at == text.npos ? text.find("Got non-fatal async event") : at;
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(at);
  const bool port = base::contains(rest, "port");
  // A new GID, LID or subnet manager, a connection that is established: no errors.
  const bool failed = base::contains(rest, "rror") || base::contains(rest, "catastrophic") ||
                      base::contains(rest, "fatal event") || base::contains(rest, "removed");
  if (!port && (!failed || base::contains(rest, "non-fatal"))) {
    return std::nullopt;
  }
  model::Fact fact = event(port && base::contains(rest, "active") ? "port-up"
                           : port                                 ? "port-down"
                                                                  : "device-error",
                           "nccl", text);
  put_device(text, text.substr(0, at), fact);
  return fact;
}

std::optional<model::Fact> of_nccl(std::string_view text) {
  if (!base::contains(text, "NET/")) {
    return std::nullopt;
  }
  if (auto fact = completion(text)) {
    return fact;
  }
  if (auto fact = async_event(text)) {
    return fact;
  }
  const bool failed =
      base::contains(text, "NET/OFI") && base::contains(text, "completed with error");
  return failed ? std::optional(event("completion-error", "nccl", text)) : std::nullopt;
}

/// "DMAR: [DMA Write] Request device [03:00.0] fault addr d1139000 [fault reason 05] PTE Write
/// access is not set", "nvidia 0000:03:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0011 …",
/// "AMD-Vi: Event logged [IO_PAGE_FAULT device=03:00.0 …": a device wrote or read where the IOMMU
/// does not let it.
std::optional<model::Fact> refused_by_iommu(std::string_view text) {
  const auto intel =
      base::contains(text, "DMAR: [DMA ") ? between(text, "Request device [", "]") : std::nullopt;
  const bool amd = base::contains(text, "AMD-Vi: Event logged [IO_PAGE_FAULT");
  if (!intel && !amd) {
    return std::nullopt;
  }
  model::Fact fact = event("iommu-fault", "kernel", text);
  const std::string_view driver = text.substr(0, text.find(": "));
  std::string device =
      intel ? base::printable(intel->substr(0, kLongestWord)) : word_behind(text, "device=");
  put(fact, "device", device.empty() ? base::printable(driver.substr(0, kLongestWord)) : device);
  fact.fields["gpu_driver"] = driver.starts_with("nvidia ") || driver.starts_with("amdgpu ");
  return fact;
}

/// "mlx5_core 0000:a1:00.0 ens1np0: Link down", "bond0: link status definitely down for interface
/// ens1f0", "nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 31 …".
std::optional<model::Fact> of_kernel(std::string_view text) {
  std::string_view device = text.substr(0, text.find(": "));
  if (auto fact = refused_by_iommu(text)) {
    return fact;
  }
  if (base::contains(text, "SXid (")) {
    model::Fact fact = event("switch-error", "kernel", text);
    put(fact, "device", base::printable(device.substr(0, kLongestWord)));
    put(fact, "status", number_or_code(text, "): "));
    fact.fields["fatal"] = base::contains(text, ", Fatal");
    put(fact, "port", number_or_code(text, "Link "));
    return fact;
  }
  // "NVRM: …: NVLink fabric state cached by the driver is out of sync
  // [NV_ERR_FABRIC_STATE_OUT_OF_SYNC]", "NVRM: knvlinkSendInbandData_IMPL: Failed to send inband
  // data": the driver and the fabric manager of the NVSwitches do not agree.
  if (base::contains(text, "NVRM: ") && (base::contains(text, "NVLink fabric state cached") ||
                                         base::contains(text, "Failed to send inband data"))) {
    return event("fabric-state", "kernel", text);
  }
  const bool adapter = text.starts_with("mlx5_core ") || text.starts_with("mlx4_core ") ||
                       text.starts_with("mlx5_") || text.starts_with("bnxt_en ") ||
                       text.starts_with("irdma") || text.starts_with("efa ") ||
                       text.starts_with("infiniband ");
  const bool interface = base::contains(device, "bond") || device.starts_with("ib") ||
                         base::contains(device, "eth") || device.starts_with("en");
  if (!adapter && !interface) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(std::min(device.size(), text.size()));
  const bool down =
      base::contains(rest, "Link down") || base::contains(rest, "link down") ||
      base::contains(rest, "Link is Down") || base::contains(rest, "link status definitely down") ||
      base::contains(rest, "Cable unplugged") || base::contains(rest, "module event[error]") ||
      base::contains(rest, "Cable error");
  const bool up = base::contains(rest, "Link up") || base::contains(rest, "link up") ||
                  base::contains(rest, "Link is Up") ||
                  base::contains(rest, "link status definitely up");
  const bool lost = base::contains(rest, "can't recover") ||
                    base::contains(rest, "pci_err_detected") ||
                    base::contains(rest, "I/O error detected") ||
                    (base::contains(rest, "wait_func") && base::contains(rest, "timeout")) ||
                    (base::contains(rest, "Uncorrect") && base::contains(rest, "(Fatal)"));
  const bool broken =
      adapter &&
      (lost || base::contains(rest, "health compromised") || base::contains(rest, "fatal error") ||
       base::contains(rest, "Fatal error") || base::contains(rest, "device is in error state") ||
       base::contains(rest, "assert_var") || base::contains(rest, "internal error"));
  if (!down && !up && !broken) {
    return std::nullopt;
  }
  model::Fact fact = event(down ? "port-down" : up ? "port-up" : "device-error", "kernel", text);
  const std::size_t interface_at = rest.find("interface ");
  device = interface_at == rest.npos ? device : rest.substr(interface_at + 10);
  put(fact, "device", base::printable(device.substr(0, std::min(device.find(','), kLongestWord))));
  return fact;
}

/// Events of the same kind, device and peer are one fact with a count.
using Sort = std::tuple<std::string, std::string, std::string, std::string, std::optional<pid_t>>;

Sort sort_of(const model::Fact& fact) {
  return {fact.text("event").value_or(""), fact.text("host").value_or(""),
          fact.text("device").value_or(""), fact.text("peer").value_or(""), fact.pid};
}

}  // namespace

std::optional<NcclTag> nccl_tag(std::string_view line) {
  std::size_t at = line.find(" NCCL ");
  at = at == line.npos ? line.find(" WARN ") : at;  // before NCCL 2.4
  at = at == line.npos ? line.find("] INFO ") + 1 : at;
  at = at == 0 ? line.npos : at;
  const std::size_t open = line.substr(0, at).rfind(" [");
  if (at == std::string_view::npos || open == std::string_view::npos) {
    return std::nullopt;
  }
  std::string_view name = line.substr(0, open);
  name = name.substr(name.rfind(' ') + 1);
  const std::size_t last = name.rfind(':');
  const std::size_t first = last == name.npos || last == 0 ? name.npos : name.rfind(':', last - 1);
  const auto pid =
      first == name.npos ? std::nullopt : pid_of(name.substr(first + 1, last - first - 1));
  if (!pid || first == 0 || first > kLongestWord || !number_of(name.substr(last + 1), INT32_MAX)) {
    return std::nullopt;
  }
  std::string_view gpu = line.substr(open + 2);
  return NcclTag{.host = name.substr(0, first), .pid = *pid, .gpu = take_number(gpu, 1023)};
}

std::string_view nccl_info(std::string_view line) {
  const std::size_t at = line.find("] NCCL INFO ");
  const std::size_t old = at == line.npos ? line.find("] INFO ") : line.npos;
  return at != line.npos    ? line.substr(at + 12)
         : old != line.npos ? line.substr(old + 7)
                            : std::string_view();
}

KernelLine kernel_line(std::string_view line) {
  const std::size_t named = line.find("kernel: ");
  KernelLine out{.host = {}, .text = line};
  if (named != line.npos && named <= kLongestWord) {
    const std::string_view before = base::trim(line.substr(0, named));
    const std::string_view host = before.substr(before.rfind(' ') + 1);
    const bool timed = base::contains(host, ":");
    out = {.host = timed ? std::string_view() : host, .text = line.substr(named + 8)};
  }
  // "[12345.678901] …", "[Fri Sep 11 04:12:09 2026] …", "[  +0.000316] …" of dmesg.
  std::string_view text = base::trim(out.text);
  const std::size_t end = text.starts_with('[') ? text.find("] ") : text.npos;
  const std::string_view inside = text.substr(0, end == text.npos ? 0 : end);
  const bool stamp = inside.size() > 5 && inside.size() < 40 &&
                     (base::contains(inside, ".") || base::contains(inside, ":")) &&
                     std::any_of(inside.begin(), inside.end(),
                                 [](unsigned char c) { return std::isdigit(c) != 0; }) &&
                     !base::contains(inside, "=") && !base::contains(inside, ".py");
  out.text = stamp ? text.substr(end + 2) : text;
  return stamp || named != line.npos ? out : KernelLine{};
}

bool is_kernel_line(std::string_view line) {
  constexpr std::array<std::string_view, 15> kWords = {"amdgpu 0000:",
                                                       "NVRM: ",
                                                       "nvidia-nvswitch",
                                                       "ut of memory: Kill",
                                                       "oom-kill:",
                                                       "oom_reaper: ",
                                                       "AER: ",
                                                       "PCIe Bus Error: ",
                                                       "blocked for more than",
                                                       "DMAR: ",
                                                       "AMD-Vi: ",
                                                       "soft lockup",
                                                       "Killed process ",
                                                       " segfault at ",
                                                       " not responding, "};
  const std::string_view text = kernel_line(line).text;
  return line.starts_with("NVRM: ") || of_kernel(text).has_value() ||
         std::any_of(kWords.begin(), kWords.end(),
                     [text](std::string_view word) { return base::contains(text, word); });
}

void read_fabric_text(std::string_view log, model::JobModel& job) {
  const NcclRanks ranks(log);
  std::map<Sort, std::size_t> known;  // event → its fact
  for (const std::string_view raw : base::split(log, '\n')) {
    const model::LogLine line = model::read_log_line(raw.substr(0, kLongestLogLine));
    auto fact = of_nccl(line.text);
    std::string host;
    if (fact) {
      if (const auto tag = nccl_tag(line.text)) {
        host = base::printable(tag->host);
        fact->pid = tag->pid;
        put(*fact, "gpu", tag->gpu);
        const auto rank = ranks.of(*tag);
        fact->rank = rank ? rank : line.rank;
      }
      fact->rank = fact->rank ? fact->rank : line.rank;
    } else if (const KernelLine kernel = kernel_line(raw.substr(0, kLongestLogLine));
               !kernel.text.empty()) {
      fact = of_kernel(kernel.text);
      host = base::printable(kernel.host.substr(0, kLongestWord));
    }
    if (!fact) {
      continue;
    }
    put(*fact, "host", host);
    if (line.time) {
      fact->fields["time"] = *line.time;
    }
    const auto same = known.find(sort_of(*fact));
    if (same != known.end()) {
      auto& count = std::get<std::int64_t>(job.facts[same->second].fields["count"]);
      ++count;
    } else if (known.size() < kMostEvents) {
      fact->fields["count"] = std::int64_t{1};
      known.emplace(sort_of(*fact), job.facts.size());
      job.facts.push_back(std::move(*fact));
    }
  }
}

}  // namespace ddpdoctor::imports
