// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/finished_agents.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestFinishLine = 240;

/// torch 1.9 to 2.13, and torchelastic before.
bool tells_success(std::string_view line) {
  return (base::contains(line, "Local worker group finished (") &&
          base::contains(line, "SUCCEEDED")) ||
         base::contains(line, "All workers successfully finished");
}

bool tells_lost_connection(std::string_view line) {
  return is_consequence(line, Message::kLostConnection);
}

/// torch's agent writes to this log, so that it would report success there, too: NCCL warns of
/// closed connections also at the end of a healthy job.
bool has_an_agent(const model::Log& log) {
  return base::contains(log.text, "torch/distributed/elastic") ||
         base::contains(log.text, "torchelastic");
}

std::string_view first_line(const model::Log& log, bool (*tells)(std::string_view)) {
  for (const std::string_view line : base::split(log.text, '\n')) {
    if (tells(line)) {
      return line;
    }
  }
  return {};
}

}  // namespace

Findings finished_before_others(const graph::Examination& examination) {
  std::string_view success;
  std::string_view lost;
  model::RankSet losers;
  Finding finding;
  finding.kind = "rank-exited";
  for (const model::Log& log : examination.job.logs) {
    const std::string_view done = first_line(log, tells_success);
    const std::string_view closed = done.empty() && has_an_agent(log)
                                        ? first_line(log, tells_lost_connection)
                                        : std::string_view();
    success = success.empty() ? done : success;
    lost = lost.empty() ? closed : lost;
    if (log.rank) {
      finding.culprits = done.empty() ? finding.culprits : finding.culprits.united({*log.rank});
      losers = closed.empty() ? losers : losers.united({*log.rank});
    }
  }
  if (success.empty() || lost.empty()) {
    return {};
  }
  finding.confidence = finding.culprits.empty() ? Confidence::kPossible : Confidence::kLikely;
  add_waiting(examination, finding);
  finding.waiting = finding.waiting.united(losers).minus(finding.culprits);
  const std::string who =
      finding.culprits.empty() ? "the ranks of one node" : said(finding.culprits);
  finding.summary =
      fmt::format("{} finished with success, but {} not: {} connection was closed", who,
                  finding.waiting.empty()
                      ? "the others have"
                      : said(finding.waiting) + " " + std::string(has_or_have(finding.waiting)),
                  finding.waiting.size() == 1 ? "its" : "their");
  for (const std::string_view line : {success, lost}) {
    finding.evidence.push_back(
        {.rank = {}, .text = "log: " + base::elide(base::printable(line), kLongestFinishLine)});
  }
  finding.fix =
      "Give every rank the same number of steps (drop_last, DistributedSampler, Join). Save and "
      "evaluate on all ranks if that calls collectives.";
  return {std::move(finding)};
}

}  // namespace ddpdoctor::detectors
