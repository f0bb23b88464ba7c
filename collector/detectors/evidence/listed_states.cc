// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/listed_states.h"

#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostListed = 8;

/// "process 7", "processes 7, 8 and 9", "processes 7, 8, … and 40 others".
std::string listed_pids(std::vector<pid_t> pids) {
  if (pids.size() > kMostListed) {
    const std::size_t others = pids.size() - kMostListed;
    pids.resize(kMostListed);
    return fmt::format("processes {} and {} other{}", fmt::join(pids, ", "), others,
                       others == 1 ? "" : "s");
  }
  return fmt::format("{} {}", pids.size() == 1 ? "process" : "processes", pids_said(pids));
}

}  // namespace

Findings listed_zombies(const graph::Examination& examination, std::string_view kind) {
  std::map<pid_t, std::vector<pid_t>> ended;
  for (const model::Fact* const fact : model::facts(examination.job, "listed-zombie")) {
    const auto parent = fact->number("parent_pid");
    if (fact->pid && parent) {
      ended[static_cast<pid_t>(*parent)].push_back(*fact->pid);
    }
  }
  Findings out;
  for (const auto& [parent, pids] : ended) {
    Finding finding;
    finding.kind = kind;
    finding.confidence = Confidence::kPossible;
    finding.summary =
        fmt::format("{} {} ended; process {}, which started {}, has not collected {}",
                    listed_pids(pids), pids.size() == 1 ? "has" : "have", parent,
                    pids.size() == 1 ? "it" : "them", pids.size() == 1 ? "it" : "them");
    finding.evidence.push_back(
        {.rank = {},
         .text = fmt::format("the table of processes shows {} as <defunct> (state Z); how {} ended "
                             "is not shown",
                             listed_pids(pids), pids.size() == 1 ? "it" : "they")});
    finding.fix = fmt::format(
        "Run `ddpdoctor attach {}` while it waits: it shows for which result. Run `dmesg | grep -i "
        "kill` to see whether the kernel killed {} for memory.",
        parent, pids.size() == 1 ? "the child" : "the children");
    finding.details["pid"] = std::int64_t{parent};
    finding.details["child_pid"] = std::int64_t{pids.front()};
    out.push_back(std::move(finding));
  }
  return out;
}

Findings listed_stops(const graph::Examination& examination, std::string_view kind) {
  std::vector<pid_t> pids;
  for (const model::Fact* const fact : model::facts(examination.job, "listed-stopped")) {
    if (fact->pid) {
      pids.push_back(*fact->pid);
    }
  }
  if (pids.empty()) {
    return {};
  }
  Finding finding;
  finding.kind = kind;
  finding.confidence = Confidence::kPossible;
  finding.summary = fmt::format("{} {} stopped by a signal (state T): SIGSTOP, SIGTTIN or Ctrl-Z",
                                listed_pids(pids), pids.size() == 1 ? "was" : "were");
  finding.evidence.push_back({.rank = {}, .text = "the table of processes shows state T"});
  finding.fix = fmt::format("Run `kill -CONT {}`, then check what stopped {}.",
                            fmt::join(pids, " "), pids.size() == 1 ? "it" : "them");
  finding.details["pid"] = std::int64_t{pids.front()};
  return {std::move(finding)};
}

Findings listed_sleepers(const graph::Examination& examination, std::string_view kind) {
  Findings out;
  if (waiting_ranks(examination).empty() || !may_hang(examination)) {
    return out;
  }
  for (const model::Fact* const fact : model::facts(examination.job, "listed-sleeper")) {
    const pid_t pid = fact->pid.value_or(0);
    const double others = fact->number("others").value_or(0);
    Finding finding;
    finding.kind = kind;
    finding.confidence = Confidence::kPossible;
    add_waiting(examination, finding);
    finding.summary = fmt::format(
        "process {} is in uninterruptible sleep (state D), in a file system or a driver; "
        "{} for other ranks",
        pid, ranks_do(finding.waiting, "is waiting", "are waiting"));
    finding.evidence.push_back(
        {.rank = {},
         .text = fmt::format("the table of processes shows state D for process {} only, not for "
                             "{:.0f} other{} with the same command",
                             pid, others, others == 1 ? "" : "s")});
    finding.fix = fmt::format(
        "Run `cat /proc/{0}/stack` as root: it names the file system or driver. Run `ps -o "
        "pid,stat,wchan:32 -p {0}` again after 10 s: a disk that answers ends state D sooner.",
        pid);
    finding.details["pid"] = std::int64_t{pid};
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace ddpdoctor::detectors
