// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/told_timeouts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// torch's monitor ended ranks whose NCCL watchdog was stuck: no message names the call.
Findings stuck_watchdogs(const graph::Examination& examination) {
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  for (const model::Fact* fact : model::facts(examination.job, "watchdog-stuck")) {
    if (fact->rank) {
      finding.culprits.insert(*fact->rank);
      finding.evidence.push_back(
          {.rank = fact->rank,
           .text = fmt::format("log: the NCCL watchdog of rank {} made no progress for {:.0f} s",
                               *fact->rank, fact->number("seconds").value_or(0))});
    }
  }
  if (finding.culprits.empty()) {
    return {};
  }
  finding.summary = fmt::format(
      "the NCCL watchdog of {} made no progress: a CUDA or NCCL call blocks there, or a thread "
      "holds the GIL in one",
      said(finding.culprits));
  finding.fix =
      "Run `ddpdoctor attach PID` or `py-spy dump --native` while it hangs, and check `dmesg` for "
      "Xid errors.";
  return {finding};
}

}  // namespace

ToldTimeouts told_timeouts(const model::JobModel& job) {
  constexpr std::size_t kMostQuoted = 8;
  ToldTimeouts out;
  for (const model::Fact* fact : model::facts(job, "watchdog-timeout")) {
    if (!fact->rank) {
      continue;
    }
    const std::string operation = fact->text("operation").value_or("");
    const bool same = out.ranks.empty() || out.operation == operation;
    out.operation = same && !operation.empty() ? operation : "a collective";
    out.ranks.insert(*fact->rank);
    const double seconds = fact->number("seconds").value_or(0);
    out.seconds = std::max(out.seconds, seconds);
    if (out.evidence.size() < kMostQuoted) {
      out.evidence.push_back(
          {.rank = fact->rank,
           .text = fmt::format("log: the NCCL watchdog of rank {} ended its wait in {} after {}",
                               *fact->rank, operation.empty() ? "a collective" : operation,
                               base::duration(seconds))});
    }
  }
  return out;
}

bool may_have_timed_out(const model::JobModel& job, model::Rank rank) {
  bool other_did = false;
  for (const model::Log& log : job.logs) {
    for (const std::string_view line : base::split(log.text, '\n')) {
      const model::LogLine told = model::read_log_line(line);
      const auto whose = told.rank ? told.rank : log.rank;
      if (whose == rank) {
        return false;
      }
      other_did = other_did || (whose && told.text.find("Watchdog caught collective operation "
                                                        "timeout") != std::string_view::npos);
    }
  }
  return other_did;
}

Findings ended_by_watchdogs(const graph::Examination& examination) {
  ToldTimeouts told = told_timeouts(examination.job);
  if (told.ranks.empty()) {
    return stuck_watchdogs(examination);
  }
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  finding.waiting = told.ranks;
  finding.evidence = std::move(told.evidence);
  finding.summary = fmt::format(
      "{} waited in {} for {} until torch's watchdog ended {}; the log does not show which rank is "
      "missing there",
      said(told.ranks), told.operation, base::duration(told.seconds),
      told.ranks.size() == 1 ? "it" : "them");
  finding.fix =
      "Run `ddpdoctor attach PID` on the launcher during the wait, or start the next run with "
      "`ddpdoctor run -- …`: it records every call.";
  return {std::move(finding)};
}

}  // namespace ddpdoctor::detectors
