// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/nccl_words.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/written_after.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kOutOfMemory = "out of memory";
constexpr std::size_t kMostNamedHosts = 4;
constexpr std::size_t kLongestWarningShown = 120;

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
  return fmt::format("{} {}", hosts.size() == 1 ? "host" : "hosts", fmt::join(hosts, " and "));
}

constexpr std::string_view kMemoryFix =
    "Leave GPU memory for NCCL: lower the batch or the share that the program reserves, and check "
    "`nvidia-smi` for other processes there.";

/// The step of NCCL in which a call of CUDA failed, by the source file of the warning.
struct SourceOfNccl {
  std::string_view file;
  std::string_view fix;
};
constexpr std::array<SourceOfNccl, 4> kSourcesOfNccl = {{
    {"transport/p2p.cc",
     "Set NCCL_P2P_DISABLE=1 to run without direct copies between GPUs; if the job then runs, "
     "check "
     "IOMMU, ACS and `nvidia-smi topo -p2p r` there."},
    {"transport/shm.cc",
     "Set NCCL_SHM_DISABLE=1 to run without shared memory; if the job then runs, give the "
     "container "
     "--ipc=host."},
    {"transport/coll_net.cc", "Set NCCL_COLLNET_ENABLE=0 to run without the network's SHARP."},
    {"transport/net_ib.cc",
     "Set NCCL_NET_GDR_LEVEL=LOC to run without GPUDirect RDMA; if the job then runs, check "
     "nvidia-peermem and the driver of the adapter."},
}};

/// Calls of CUDA that failed with one error.
struct FailedCalls {
  std::vector<const model::Fact*> facts;
  model::RankSet ranks;
  std::set<std::string> hosts;

  void add(const model::Fact& fact) {
    facts.push_back(&fact);
    ranks = fact.rank ? ranks.united({*fact.rank}) : ranks;
    hosts.insert(fact.text("host").value_or(""));
  }
  [[nodiscard]] std::string whom() const {
    return !ranks.empty() ? said(ranks) : facts.size() > 1 ? "several ranks" : "a rank";
  }
  [[nodiscard]] Finding finding(std::string_view kind) const {
    constexpr std::size_t kMostQuoted = 8;
    Finding out;
    out.kind = kind;
    out.confidence = Confidence::kLikely;
    for (const model::Fact* fact : facts) {
      if (out.evidence.size() < kMostQuoted) {
        out.evidence.push_back(
            {.rank = fact->rank, .text = "log: " + fact->text("text").value_or("")});
      }
    }
    out.details["pid"] = static_cast<std::int64_t>(facts.front()->pid.value_or(0));
    return out;
  }
};

/// Several ranks fail in one call by themselves: the machine is at fault, not one of them.
std::string fix_of_source(const FailedCalls& failed) {
  const std::string source = failed.facts.front()->text("source").value_or("");
  const auto* const found =
      std::find_if(kSourcesOfNccl.begin(), kSourcesOfNccl.end(),
                   [&source](const SourceOfNccl& one) { return source.ends_with(one.file); });
  return found != kSourcesOfNccl.end()
             ? std::string(found->fix)
             : fmt::format(
                   "Check driver and GPUs of {} (`nvidia-smi`, `dmesg | grep -i nvrm`): the "
                   "same call failed on several ranks, so no rank is to blame.",
                   hosts_said(failed.hosts));
}

/// Without a lack of memory: that has nothing to do with the NVSwitches.
bool sets_up_nvls(const model::Fact& fact) {
  return fact.text("source").value_or("").ends_with("nvls.cc") &&
         fact.text("error").value_or("").find(kOutOfMemory) == std::string::npos;
}

/// A text of a table: a detector of its kind reports it, or it follows from another failure.
bool has_detector(std::string_view text) {
  const auto all = known_exceptions();
  return std::any_of(all.begin(), all.end(), [text](const KnownException& one) {
    constexpr std::string_view kWarns = "NCCL WARN ";
    const std::string_view pattern = one.pattern;
    return base::contains(text, pattern.substr(pattern.starts_with(kWarns) ? kWarns.size() : 0));
  });
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
  constexpr std::array<std::string_view, 5> kKinds = {
      "shm-exhausted", "master-unreachable", "fabric-fault", "environment-differs", "wrong-device"};
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

bool is_of_nccl_itself(const model::Fact& fact) {
  return fact.number("code").has_value();
}

std::string_view name_of_error(double code) {
  return code == 3 ? "internal error" : code == 4 ? "invalid argument" : "invalid usage";
}

/// What to do for a warning of this source file, if several ranks wrote it.
std::string fix_of_warning(const model::Fact& fact) {
  const std::string source = fact.text("source").value_or("");
  if (source.starts_with("graph/")) {
    return "Update NCCL and its network plugin: they do not know this machine's topology. If "
           "NCCL_TOPO_FILE is set, in the log by the plugin too, unset it or correct that file.";
  }
  return "Fix what this warning says first; NCCL_DEBUG=INFO shows the lines before it.";
}

/// Ranks that NCCL gave an error of its own, by their first warning.
Findings failed_by_nccl(const model::JobModel& job, std::string_view kind) {
  std::map<std::string, FailedCalls> by_error;
  for (const model::Fact* fact : model::facts(job, "nccl-failure")) {
    const std::string error = fact->text("error").value_or("");
    if (is_of_nccl_itself(*fact) && !has_detector(error)) {
      by_error[error].add(*fact);
    }
  }
  Findings out;
  for (const auto& [error, failed] : by_error) {
    const model::Fact& first = *failed.facts.front();
    const bool several = failed.facts.size() > 1;
    Finding finding = failed.finding(kind);
    finding.culprits = several ? model::RankSet{} : failed.ranks;
    finding.waiting = failed.ranks.minus(finding.culprits);
    finding.summary =
        fmt::format("{} failed in NCCL ({}): {} ({})", failed.whom(),
                    name_of_error(first.number("code").value_or(3)),
                    base::elide(error, kLongestWarningShown), first.text("source").value_or(""));
    finding.fix = fix_of_warning(first);
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace

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

bool nccl_tests_passed(const model::JobModel& job) {
  return !job.logs.empty() &&
         std::all_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
           const std::size_t passed = log.text.rfind("# Out of bounds values : 0 OK");
           const std::size_t begun = log.text.rfind(" nGpus ");
           const auto lines = base::split(log.text, '\n');
           return passed != std::string::npos && (begun == std::string::npos || begun < passed) &&
                  log.text.find("# Avg bus bandwidth", passed) != std::string::npos &&
                  std::none_of(lines.begin(), lines.end(), [](std::string_view line) {
                    return !line.starts_with('#') && model::tells_trouble(line);
                  });
         });
}

bool nccl_explains(const model::JobModel& job, std::string_view exception) {
  return is_of_nccl(exception) && nccl_tells_why(job);
}

Findings failed_in_nccl(const model::JobModel& job, std::string_view kind) {
  std::map<std::string, FailedCalls> by_error;
  model::RankSet all;
  for (const model::Fact* fact : model::facts(job, "nccl-failure")) {
    if (!sets_up_nvls(*fact) && !is_of_nccl_itself(*fact)) {
      by_error[fact->text("error").value_or("")].add(*fact);
      all = fact->rank ? all.united({*fact->rank}) : all;
    }
  }
  Findings out;
  for (const auto& [error, failed] : by_error) {
    const bool memory = error.find(kOutOfMemory) != error.npos;
    const bool several = failed.facts.size() > 1;
    Finding finding = failed.finding(kind);
    finding.culprits = memory || !several ? failed.ranks : model::RankSet{};
    finding.waiting = failed.ranks.minus(finding.culprits);
    finding.summary = fmt::format(
        "{} {}{}", failed.whom(),
        memory ? "ran out of GPU memory in NCCL" : "failed in NCCL: CUDA reports '" + error + "'",
        several ? std::string() : fmt::format(" ({})", process_said(*failed.facts.front())));
    finding.fix = memory           ? kMemoryFix
                  : several        ? fix_of_source(failed)
                  : all.size() > 1 ? "Several ranks failed by themselves: fix the error of each."
                                   : "Fix this error first: the other ranks failed because of it.";
    out.push_back(std::move(finding));
  }
  if (all.empty() && out.empty()) {
    out = failed_by_nccl(job, kind);
  }
  return output_goes_on(job) ? Findings{} : out;
}

std::optional<Finding> failed_in_nvls(const model::JobModel& job, std::string_view kind) {
  FailedCalls failed;
  for (const model::Fact* fact : model::facts(job, "nccl-failure")) {
    if (sets_up_nvls(*fact) && !is_of_nccl_itself(*fact)) {
      failed.add(*fact);
    }
  }
  if (failed.facts.empty() || output_goes_on(job)) {
    return std::nullopt;
  }
  Finding finding = failed.finding(kind);
  finding.waiting = failed.ranks;
  const std::string ranks =
      failed.ranks.empty() ? std::string() : fmt::format(" on {}", said(failed.ranks));
  finding.summary = fmt::format(
      "NCCL could not set up NVLink SHARP (NVLS) of {}: CUDA reports '{}'{}",
      hosts_said(failed.hosts), failed.facts.front()->text("error").value_or(""), ranks);
  finding.fix =
      "Set NCCL_NVLS_ENABLE=0 to run without NVLink SHARP. To repair it, end all jobs there, "
      "restart the fabric manager and reset the GPUs (`nvidia-smi -r`), or reboot.";
  return finding;
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
