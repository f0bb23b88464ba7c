// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/half_finished.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors {
namespace {

/// Every rank needs what every other rank contributes. The root of a broadcast, and those that send
/// in a reduce, may finish early only if the message is small.
bool needs_all_ranks(std::string_view operation) {
  return operation.starts_with("all_reduce") || operation.starts_with("all_gather") ||
         operation.starts_with("reduce_scatter") || operation == "barrier" ||
         operation.starts_with("broadcast") || operation.starts_with("reduce");
}

struct HalfFinished {
  const model::CollectiveCall* call = nullptr;  // of a rank that waits
  model::RankSet waiting;
  model::RankSet done;
};

/// The oldest such call of a group.
std::optional<HalfFinished> oldest_in(const graph::Examination& examination,
                                      std::string_view group) {
  std::optional<HalfFinished> found;
  for (const auto& [rank, calls] : examination.history.ranks(group)) {
    const auto open = std::find_if(calls.begin(), calls.end(), [](const auto* call) {
      return call->state != model::CallState::kCompleted && needs_all_ranks(call->operation);
    });
    if (open != calls.end() && (!found || (*open)->sequence < found->call->sequence)) {
      found = HalfFinished{.call = *open, .waiting = {}, .done = {}};
    }
  }
  for (const auto& [rank, calls] : examination.history.ranks(group)) {
    const model::CollectiveCall* same =
        found ? examination.history.at(group, rank, found->call->sequence) : nullptr;
    if (same != nullptr) {
      (same->state == model::CallState::kCompleted ? found->done : found->waiting).insert(rank);
    }
  }
  return found && !found->done.empty() ? found : std::nullopt;
}

bool has_a_stack(const model::JobModel& job) {
  const model::Observation* now = model::latest(job);
  return now != nullptr &&
         std::any_of(now->processes.begin(), now->processes.end(), [](const auto& process) {
           return std::any_of(process.threads.begin(), process.threads.end(),
                              [](const model::Thread& one) { return !one.frames.empty(); });
         });
}

/// The last line that the program of a rank printed before torch reported the time-out.
std::string last_words(const model::JobModel& job, model::Rank rank) {
  constexpr std::size_t kLongestWords = 160;
  std::string_view last;
  for (const model::Log& log : job.logs) {
    for (const std::string_view raw : base::split(log.text, '\n')) {
      if (raw.find("ProcessGroupNCCL") != raw.npos || raw.find("Watchdog caught") != raw.npos) {
        break;
      }
      const model::LogLine line = model::read_log_line(raw.substr(0, 4096));
      const auto whose = line.rank ? line.rank : log.rank;
      last = whose == rank && !base::trim(line.text).empty() ? base::trim(line.text) : last;
    }
  }
  return base::elide(base::printable(last), kLongestWords);
}

}  // namespace

std::optional<Finding> half_finished(const graph::Examination& examination) {
  // Recorders of a running job learn late that a call has finished; a time-out does not.
  const bool by_timeouts = (examination.still() || examination.job.ended) &&
                           !has_a_stack(examination.job) &&
                           !model::facts(examination.job, model::kCallsOfLog).empty();
  if (!by_timeouts) {
    return std::nullopt;
  }
  for (const std::string& group : examination.history.groups()) {
    const auto half = oldest_in(examination, group);
    if (!half) {
      continue;
    }
    Finding finding;
    finding.kind = "undetermined";
    finding.confidence = Confidence::kPossible;
    finding.waiting = half->waiting.united(half->done);
    finding.summary =
        fmt::format("{} finished {}, in which {}: they may have called different collectives",
                    said(half->done), call_name(examination.job, *half->call),
                    ranks_do(half->waiting, "is still waiting", "are still waiting"));
    for (const model::RankSet* side : {&half->waiting, &half->done}) {
      const std::string words = last_words(examination.job, side->front());
      if (!words.empty()) {
        finding.evidence.push_back(
            {.rank = side->front(),
             .text = fmt::format("log: last line of rank {} before the time-out: {}", side->front(),
                                 words)});
      }
    }
    add_whereabouts(finding, examination, finding.waiting);
    finding.fix = fmt::format(
        "Print the number of batches of each rank: an uneven number leaves {} one call behind. To "
        "see every call, start the next run with `ddpdoctor run -- …`.",
        said(half->waiting));
    return finding;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
