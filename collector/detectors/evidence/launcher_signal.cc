// SPDX-License-Identifier: Apache-2.0
// torch/distributed/elastic/agent/server/api.py writes "Received Signals.SIGHUP death signal,
// shutting down workers" (before 1.11 with the number), and multiprocessing/api.py raises
// "SignalException: Process 3060 got signal: 1".
#include "collector/detectors/evidence/launcher_signal.h"

#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestSignalLine = 200;

struct SignalWords {
  std::string_view text;
  int signal = 0;
};

/// The signal that this line says the launcher received.
std::optional<int> signal_in(std::string_view line) {
  constexpr std::array<SignalWords, 6> kReceived = {
      {{"Received Signals.SIGHUP death signal", SIGHUP},
       {"Received 1 death signal", SIGHUP},
       {"Received SIGHUP death signal", SIGHUP},
       {"Received Signals.SIGTERM death signal", SIGTERM},
       {"Received 15 death signal", SIGTERM},
       {"Received SIGTERM death signal", SIGTERM}}};
  constexpr std::array<SignalWords, 2> kRaised = {
      {{" got signal: 1", SIGHUP}, {" got signal: 15", SIGTERM}}};
  for (const auto& [words, signal] : kReceived) {
    if (base::contains(line, words)) {
      return signal;
    }
  }
  for (const auto& [words, signal] : kRaised) {
    if (base::contains(line, "SignalException: Process ") && line.ends_with(words)) {
      return signal;
    }
  }
  return std::nullopt;
}

bool a_rank_has_failed(const model::JobModel& job) {
  const auto all = processes(job);
  return std::any_of(all.begin(), all.end(), [&job](const model::Process* process) {
    const auto exit = process->rank ? exit_of(job, *process) : std::nullopt;
    return exit && (exit->signal || exit->status.value_or(0) != 0);
  });
}

}  // namespace

std::optional<Finding> ended_from_outside(const graph::Examination& examination) {
  const model::JobModel& job = examination.job;
  if (job.logs.empty() || !job.collectives.empty() || a_rank_has_failed(job)) {
    return std::nullopt;
  }
  for (const LogStream& stream : log_streams(job)) {
    for (const LogLine& line : stream) {
      const auto signal = signal_in(base::trim(line.text));
      if (!signal) {
        continue;
      }
      Finding finding;
      finding.kind = "dead-rank";
      const bool hangup = *signal == SIGHUP;
      finding.confidence = hangup ? Confidence::kLikely : Confidence::kPossible;
      finding.summary =
          hangup
              ? "the launcher received SIGHUP, probably because its terminal or SSH session "
                "closed, and ended all ranks"
              : "the launcher received SIGTERM from outside (sender unknown) and ended all ranks";
      finding.evidence.push_back(
          {.rank = {},
           .text =
               "log: " + base::elide(base::printable(base::trim(line.text)), kLongestSignalLine)});
      finding.details["signal"] = static_cast<std::int64_t>(*signal);
      finding.fix =
          hangup ? "Start the job in tmux, with `setsid`, or as a batch job: torchrun handles "
                   "SIGHUP itself, so that nohup does not protect it."
                 : "Read the log of the scheduler or the container runtime: a time limit, a memory "
                   "limit, a preemption or a failed node ends a job in this way.";
      return finding;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
