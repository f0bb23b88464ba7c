// SPDX-License-Identifier: Apache-2.0
// "NVRM: Xid (PCI:0000:4f:00): 79, pid=221334, name=python, GPU has fallen off the bus.", the same
// without "PCI:" before driver 460; "NVRM: The NVIDIA GPU 0000:b3:00.0 …" over three lines.
#include "collector/detectors/evidence/gpu_events.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "base/lower.h"
#include "base/text.h"
#include "collector/detectors/evidence/bus_errors.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestEventLine = 4096;  // longer lines are ignored
constexpr std::size_t kLongestEventQuote = 240;
constexpr std::size_t kLongestHost = 128;
constexpr std::size_t kMostEvents = 1024;
constexpr std::size_t kNearAddress = 4;  // lines of one message
constexpr std::string_view kXid = "NVRM: Xid (";

std::int64_t number_behind(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  std::int64_t out = 0;
  if (at != std::string_view::npos) {
    const char* const begin = text.data() + at + word.size();
    std::from_chars(begin, text.data() + text.size(), out);
  }
  return std::max<std::int64_t>(out, 0);
}

bool hex(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}

/// The number of hexadecimal digits at `at`.
std::size_t digits_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && hex(text[end])) {
    ++end;
  }
  return end - at;
}

/// "4f:00" or "4f:00.0" at `at`, after the domain.
bool is_bus_and_device(std::string_view text, std::size_t at) {
  return digits_at(text, at) == 2 && at + 2 < text.size() && text[at + 2] == ':' &&
         digits_at(text, at + 3) == 2;
}

/// "Oct  6 11:03:18 node5 kernel: …" → node5.
std::string host_of(std::string_view line) {
  const std::size_t kernel = line.find(" kernel: ");
  if (kernel == std::string_view::npos || kernel > kLongestHost) {
    return {};
  }
  const std::string_view host = line.substr(0, kernel).substr(line.rfind(' ', kernel - 1) + 1);
  return kernel == 0 || host.empty() || base::contains(host, ":") ? std::string()
                                                                  : base::printable(host);
}

std::string said_of(std::int64_t number) {
  const Xid row = xid(number);
  return row.what.empty() ? fmt::format("Xid {}", number)
                          : fmt::format("Xid {} ({})", number, row.what);
}

std::optional<GpuEvent> of_xid(std::string_view line) {
  const std::size_t at = line.find(kXid);
  const std::size_t end = at == line.npos ? at : line.find("): ", at);
  const std::int64_t number = end == line.npos ? 0 : number_behind(line.substr(end), "): ");
  if (number == 0) {
    return std::nullopt;
  }
  GpuEvent event;
  event.xid = number;
  event.speaks_of = xid(number).speaks_of;
  event.what = said_of(number);
  event.pid = static_cast<pid_t>(
      std::min<std::int64_t>(number_behind(line.substr(end), "pid="), INT32_MAX));
  event.previous = number_behind(line.substr(end), "previous Xid ");
  if (event.speaks_of == XidClass::kCleanup && event.previous != 0) {
    event.speaks_of = xid(event.previous).speaks_of;
    event.what = fmt::format("{}, then Xid {}", said_of(event.previous), number);
  }
  return event;
}

/// "node1:3141 NCCL DIAG [INFO] Xid 79 detected 1 time on host node1. …": the result of NCCL's
/// diagnostics on the kernel logs of all hosts.
std::optional<GpuEvent> of_diagnostics(std::string_view line) {
  constexpr std::string_view kDiagnostics = " NCCL DIAG ";
  constexpr std::string_view kHost = " on host ";
  const std::size_t at = line.find(kDiagnostics);
  const std::size_t word = at == line.npos ? at : line.find(" Xid ", at);
  const std::string_view rest = line.substr(std::min(word, line.size()));
  const std::int64_t number = number_behind(rest, " Xid ");
  if (number == 0 || !base::contains(rest, " detected ") ||
      base::contains(rest, "No user action")) {
    return std::nullopt;
  }
  GpuEvent event;
  event.xid = number;
  event.speaks_of = xid(number).speaks_of;
  event.what = said_of(number);
  event.of_kernel = true;
  if (const std::size_t host = rest.find(kHost); host != rest.npos) {
    const std::string_view name = rest.substr(host + kHost.size(), kLongestHost);
    event.host = base::printable(name.substr(0, name.find(". ")));
  }
  return event;
}

/// A lost GPU may also be reported without an Xid.
std::optional<GpuEvent> without_xid(std::string_view line) {
  const bool kernel = base::contains(line, "NVRM: ");
  const bool gone = base::contains(line, "fallen off the bus");
  const bool lost = base::contains(line, "GPU is lost");
  const bool query = base::contains(line, "Unable to determine the device handle for ");
  const bool unstarted = kernel && base::contains(line, "RmInitAdapter failed");
  if (!(gone && kernel) && !query && !unstarted) {
    return std::nullopt;
  }
  GpuEvent event;
  event.speaks_of = gone || lost ? XidClass::kHardware : XidClass::kUnknown;
  event.queried = query && !lost;
  event.what = gone        ? "that it has fallen off the bus"
               : lost      ? "that it is lost"
               : unstarted ? "that the driver could not start it"
                           : "no handle to nvidia-smi";
  return event;
}

/// AMD's driver ("amdgpu 0000:dd:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT)
/// detected!") and ROCm's runtime ("HW Exception by GPU node-9 (Agent handle: 0x…) reason :GPU
/// Hang"), which aborts the process.
std::optional<GpuEvent> of_amd(std::string_view line) {
  const bool kernel = base::contains(line, "amdgpu");
  const bool hardware = kernel && base::contains(line, "uncorrectable hardware error");
  const bool ring = kernel && base::contains(line, " ring ") && base::contains(line, " timeout");
  const bool reset = kernel && base::contains(line, "GPU reset begin");
  const bool hang = base::contains(line, "HW Exception by GPU node-");
  const bool access = base::contains(line, "Memory access fault by GPU node-");
  if (!hardware && !ring && !reset && !hang && !access) {
    return std::nullopt;
  }
  GpuEvent event;
  event.speaks_of = hardware ? XidClass::kHardware
                    : access ? XidClass::kApplication
                             : XidClass::kDriver;
  event.what = hardware ? "an uncorrectable hardware error"
               : ring   ? "that a queue of commands timed out"
               : hang   ? "a hang to ROCm"
               : access ? "a memory access fault"
                        : "a reset";
  return event;
}

/// The only rank for which NCCL's log names the GPU at this address; the kernel's log may not name
/// its host.
std::optional<model::Rank> rank_at(const model::JobModel& job, const GpuEvent& event) {
  model::RankSet ranks;
  for (const model::Fact* fact : model::facts(job, "nccl-device")) {
    const bool host = event.host.empty() || event.host == fact->text("host");
    if (host && fact->rank && !event.address.empty() &&
        fact->text("address").value_or("").starts_with(event.address)) {
      ranks.insert(*fact->rank);
    }
  }
  return ranks.size() == 1 ? std::optional(ranks.front()) : std::nullopt;
}

/// The rank of the GPU: of the process that the line names, or of the GPU in NCCL's log.
std::optional<model::Rank> rank_of(const model::JobModel& job, const GpuEvent& event) {
  const model::Process* process = event.pid == 0 ? nullptr : model::process(job, event.pid);
  const auto served = process == nullptr ? std::nullopt : served_rank(job, *process);
  return served ? served : rank_at(job, event);
}

void complete(std::string_view line, const model::JobModel& job, GpuEvent& event) {
  event.line = base::elide(base::printable(base::trim(line)), kLongestEventQuote);
  event.host = event.host.empty() ? host_of(line) : event.host;
  event.rank = event.rank ? event.rank : rank_of(job, event);
}

/// One event may be reported both with an Xid and in words.
bool is_told(const std::vector<GpuEvent>& known, const GpuEvent& event) {
  return event.xid == 0 && std::any_of(known.begin(), known.end(), [&event](const GpuEvent& one) {
           return one.address == event.address && one.host == event.host &&
                  one.speaks_of >= event.speaks_of;
         });
}

void read_log(std::string_view log, const model::JobModel& job, std::vector<GpuEvent>& out) {
  std::string address;  // named by a line shortly above
  std::size_t since = 0;
  BusErrors bus;
  for (std::string_view line : base::split(log, '\n')) {
    line = line.substr(0, kLongestEventLine);
    ++since;
    const bool speaks = base::contains(line, "NVRM: ") ||
                        base::contains(line, "device handle for ") || is_of_gpu_driver(line);
    if (std::string own = speaks ? gpu_address(line) : std::string(); !own.empty()) {
      address = std::move(own);
      since = 0;
    }
    auto event = of_xid(line);
    event = event ? event : of_diagnostics(line);
    event = event ? event : without_xid(line);
    event = event ? event : of_amd(line);
    event = event ? event : bus.read(line);
    if (!event || out.size() >= kMostEvents) {
      continue;
    }
    event->address = since <= kNearAddress ? address : std::string();
    complete(line, job, *event);
    if (!is_told(out, *event)) {
      out.push_back(std::move(*event));
    }
  }
}

void read_fact(const model::Fact& fact, const model::JobModel& job, std::vector<GpuEvent>& out) {
  const std::string text = fact.text("text").value_or("");
  auto event = of_xid(text);
  event = event ? event : without_xid(text);
  if (fact.text("about").value_or(event ? "xid" : "") != "xid") {
    return;
  }
  GpuEvent known;
  known.what = "a fault";
  known = event ? std::move(*event) : known;
  known.address = gpu_address(text);
  known.host = fact.text("host").value_or("");
  known.pid = fact.pid.value_or(known.pid);
  known.rank = fact.rank;
  known.of_kernel = true;
  complete(text.empty() ? "Xid" : text, job, known);
  out.push_back(std::move(known));
}

}  // namespace

std::string gpu_address(std::string_view line) {
  constexpr std::size_t kDomain = 4;
  for (std::size_t colon = line.find(':'); colon != line.npos; colon = line.find(':', colon + 1)) {
    std::size_t begin = colon;
    while (begin > 0 && colon - begin < 8 && hex(line[begin - 1])) {
      --begin;
    }
    const std::size_t domain = colon - begin;
    if (domain < 3 || !is_bus_and_device(line, colon + 1)) {
      continue;
    }
    const std::size_t end = colon + 6;
    const bool function = end + 1 < line.size() && line[end] == '.' && hex(line[end + 1]);
    std::string out(line.substr(colon - std::min(domain, kDomain), 6 + std::min(domain, kDomain)));
    out.insert(0, kDomain - std::min(domain, kDomain), '0');
    return base::lower(out) + (function ? fmt::format(".{}", line[end + 1]) : std::string(".0"));
  }
  return {};
}

std::vector<GpuEvent> gpu_events(const model::JobModel& job) {
  std::vector<GpuEvent> out;
  for (const model::Fact* fact : model::facts(job, "kernel-log")) {
    read_fact(*fact, job, out);
  }
  for (const model::Log& log : job.logs) {
    read_log(log.text, job, out);
  }
  return out;
}

}  // namespace ddpdoctor::detectors
