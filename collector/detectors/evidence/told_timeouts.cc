// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/told_timeouts.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kCaptureNextTime =
    "Run `ddpdoctor attach PID` on the launcher during the wait, or start the next run with "
    "`ddpdoctor run -- …`: it records every call.";

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

/// The calls of a log in which watchdogs ended ranks; no detector could say who is missing there.
Findings ended_in_calls(const graph::Examination& examination) {
  const model::JobModel& job = examination.job;
  if (!job.ended || model::facts(job, model::kCallsOfLog).empty()) {
    return {};
  }
  std::map<std::string, model::RankSet> ranks_in;
  Finding finding;
  for (const model::CollectiveCall& call : job.collectives) {
    if (!model::is_over(call.state) && call.state != model::CallState::kUnknown &&
        !call.operation.empty()) {
      ranks_in[fmt::format("{} #{} of {}", call.operation, call.sequence,
                           group_name(job, call.group))]
          .insert(call.rank);
      finding.waiting.insert(call.rank);
    }
  }
  if (ranks_in.empty()) {
    return {};
  }
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  std::vector<std::string> waits;
  for (const auto& [call, ranks] : ranks_in) {
    waits.push_back(
        fmt::format("{} {} in {}", said(ranks), ranks.size() == 1 ? "was" : "were", call));
  }
  finding.summary = fmt::format(
      "{} until torch's watchdog ended {}; the log does not show which rank is missing there",
      fmt::join(waits, ", "), finding.waiting.size() == 1 ? "it" : "them");
  finding.fix = std::string(kCaptureNextTime);
  return {std::move(finding)};
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
      other_did = other_did || (whose && base::contains(told.text, kWatchdogTimeout));
    }
  }
  return other_did;
}

bool told_after_timeouts(const model::JobModel& job, std::string_view kind) {
  std::map<std::size_t, std::size_t> first;  // log → its first line of a watchdog
  for (const LogStream& stream : job.logs.empty() ? std::vector<LogStream>() : log_streams(job)) {
    for (const LogLine& line : stream) {
      if (base::contains(line.text, kWatchdogTimeout) ||
          base::contains(line.text, "due to a collective timeout")) {
        const auto [known, is_new] = first.emplace(line.log, line.number);
        known->second = std::min(known->second, line.number);
      }
    }
  }
  const auto ends = sightings(job, kind);
  return !ends.empty() && std::all_of(ends.begin(), ends.end(), [&first](const Sighting& end) {
    const auto gave_up = first.find(end.log);
    return gave_up != first.end() && gave_up->second < end.number;
  });
}

Findings ended_by_watchdogs(const graph::Examination& examination) {
  ToldTimeouts told = told_timeouts(examination.job);
  if (told.ranks.empty()) {
    Findings stuck = stuck_watchdogs(examination);
    return stuck.empty() ? ended_in_calls(examination) : stuck;
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
  finding.fix = std::string(kCaptureNextTime);
  return {std::move(finding)};
}

}  // namespace ddpdoctor::detectors
