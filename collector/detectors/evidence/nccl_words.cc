// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/nccl_words.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/written_after.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kOutOfMemory = "out of memory";
constexpr std::size_t kMostNamedHosts = 4;

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

/// "GPU 3 of node1, pid 71".
std::string process_said(const model::Fact& fact) {
  const auto gpu = fact.number("gpu");
  const std::string host = fact.text("host").value_or("");
  return fmt::format("{}{}, pid {}", gpu ? fmt::format("GPU {:.0f} of ", *gpu) : std::string(),
                     host, fact.pid.value_or(0));
}

std::string hosts_said(const std::set<std::string>& hosts) {
  if (hosts.size() > kMostNamedHosts) {
    return fmt::format("{} hosts", hosts.size());
  }
  return fmt::format("hosts {}", fmt::join(hosts, " and "));
}

bool is_of_nccl(std::string_view exception) {
  constexpr std::array<std::string_view, 6> kErrors = {"NCCL error",
                                                       "NCCL Error",
                                                       "ncclSystemError",
                                                       "ncclCommInitRank failed",
                                                       "unhandled system error",
                                                       "ncclInternalError"};
  return base::contains_any(exception, kErrors);
}

bool nccl_tells_why(const model::JobModel& job) {
  constexpr std::array<std::string_view, 4> kKinds = {"shm-exhausted", "nccl-unreachable",
                                                      "environment-differs", "wrong-device"};
  return std::any_of(kKinds.begin(), kKinds.end(), [&job](std::string_view kind) {
    const auto seen = sightings(job, kind);
    return std::any_of(seen.begin(), seen.end(), [&job](const Sighting& sighting) {
      const KnownException& known = *sighting.exception;
      return !known.common && !known.passes && !known.warns &&
             (known.because.empty() ||
              std::any_of(job.logs.begin(), job.logs.end(), [&known](const model::Log& log) {
                return log.text.find(known.because) != std::string::npos;
              }));
    });
  });
}

}  // namespace

bool has_only_addresses(const model::JobModel& job) {
  return std::all_of(job.facts.begin(), job.facts.end(), [](const model::Fact& fact) {
    return fact.kind == "nccl-interface" || fact.kind == "nccl-setup";
  });
}

bool ended_well_in_nccl(const model::JobModel& job) {
  const auto all = model::facts(job, "nccl-setup");
  const bool closed = std::all_of(all.begin(), all.end(), [](const model::Fact* fact) {
    return fact->flag("closed").value_or(false);
  });
  return !all.empty() && closed &&
         std::none_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
           const auto lines = base::split(log.text, '\n');
           return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
             return !line.starts_with('#') && model::tells_trouble(line);  // a column of nccl-tests
           });
         });
}

bool nccl_explains(const model::JobModel& job, std::string_view exception) {
  return is_of_nccl(exception) && nccl_tells_why(job);
}

Findings failed_in_nccl(const model::JobModel& job, std::string_view kind) {
  std::map<std::string, Finding> by_error;
  if (output_goes_on(job)) {
    return {};
  }
  for (const model::Fact* fact : model::facts(job, "nccl-failure")) {
    const std::string error = fact->text("error").value_or("");
    Finding& finding = by_error[error];
    const bool first = finding.evidence.empty();
    const bool memory = error.find(kOutOfMemory) != error.npos;
    finding.kind = kind;
    finding.confidence = Confidence::kLikely;
    finding.evidence.push_back(
        {.rank = fact->rank, .text = "log: " + fact->text("text").value_or(error)});
    if (fact->rank) {
      finding.culprits.insert(*fact->rank);
    }
    if (first) {
      finding.summary = fmt::format(
          "{} {} ({})", fact->rank ? said(model::RankSet{*fact->rank}) : "a rank",
          memory ? "ran out of GPU memory in NCCL" : "failed in NCCL: CUDA reports '" + error + "'",
          process_said(*fact));
      finding.fix = memory ? "Leave GPU memory for NCCL: lower the batch or the share that the "
                             "program reserves, and check `nvidia-smi` for other processes there."
                           : "Fix this error first: the other ranks failed because of it.";
      finding.details["pid"] = static_cast<std::int64_t>(fact->pid.value_or(0));
    } else if (finding.culprits.size() > 1) {
      finding.summary = fmt::format("{} {}", said(finding.culprits),
                                    memory ? "ran out of GPU memory in NCCL"
                                           : "failed in NCCL: CUDA reports '" + error + "'");
    }
  }
  Findings out;
  for (auto& [error, finding] : by_error) {
    out.push_back(std::move(finding));
  }
  return out;
}

std::optional<BadAddress> bad_address(const model::JobModel& job) {
  std::map<std::string, std::set<std::string>> hosts_at;  // by "eth0 (172.17.0.2)"
  std::set<std::string> hosts;
  for (const model::Fact* fact : model::facts(job, "nccl-interface")) {
    const std::string host = fact->text("host").value_or("");
    hosts.insert(host);
    hosts_at[fact->text("address").value_or("")].insert(host);
  }
  const auto shared = std::find_if(hosts_at.begin(), hosts_at.end(),
                                   [](const auto& one) { return one.second.size() > 1; });
  if (hosts.size() < 2 || shared == hosts_at.end() || output_goes_on(job)) {
    return std::nullopt;
  }
  const bool loopback = is_loopback(shared->first);
  BadAddress out;
  out.words =
      fmt::format("NCCL uses the address {} on {}", shared->first, hosts_said(shared->second));
  out.fix = loopback
                ? "Set NCCL_SOCKET_IFNAME on every node to an interface that reaches the other "
                  "nodes, or exclude lo: NCCL_SOCKET_IFNAME=^lo,docker."
                : "Give each host an address of its own that the others reach: start "
                  "containers with --network=host, or set NCCL_SOCKET_IFNAME.";
  for (const model::Fact* fact : model::facts(job, "nccl-interface")) {
    const std::string host = fact->text("host").value_or("");
    if (fact->text("address") == shared->first && out.evidence.size() < kMostNamedHosts) {
      out.evidence.push_back(
          {.rank = fact->rank,
           .text = fmt::format("log: NCCL of {}, pid {}, uses {}:{}", host, fact->pid.value_or(0),
                               fact->text("interface").value_or(""), shared->first)});
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors
