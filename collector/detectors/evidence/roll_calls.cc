// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/roll_calls.h"

#include <string>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/listed_ranks.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors {
namespace {

model::RankSet ranks_of(const model::Fact& fact, const std::string& field) {
  return model::RankSet(model::listed_ranks(fact.text(field).value_or("")).ranks);
}

/// A new_group that most ranks did not call.
bool is_new_group_of_few(const model::Fact& fact) {
  return is_of_new_group(fact) && ranks_of(fact, "came").size() < ranks_of(fact, "absent").size();
}

/// The user's line that waited in this barrier, if an exception with the message was raised there.
void add_waiting_line(const model::JobModel& job, const std::string& message, Finding& finding) {
  for (const Traceback& one : tracebacks(job)) {
    if (one.place.known() && !message.empty() && base::contains(one.exception, message)) {
      finding.locations.push_back(location(
          one.place, {},
          one.rank ? fmt::format("rank {} waited here", *one.rank) : "a rank waited here"));
      return;
    }
  }
}

}  // namespace

bool is_of_new_group(const model::Fact& roll_call) {
  return roll_call.text("barrier").value_or("").starts_with("new_group");
}

std::optional<Finding> new_group_of_few(const graph::Examination& examination) {
  for (const model::Fact* fact : model::facts(examination.job, model::kRollCall)) {
    if (!is_new_group_of_few(*fact)) {
      continue;
    }
    Finding finding;
    finding.kind = "new-group-subset";
    finding.confidence = Confidence::kLikely;
    finding.culprits = ranks_of(*fact, "came");
    finding.waiting = ranks_of(*fact, "absent");
    finding.summary = fmt::format(
        "{} {}, which {} did not call", said(finding.culprits),
        finding.culprits.size() == 1 ? "is alone in new_group" : "are alone in new_group",
        said(finding.waiting));
    for (const Sighting& sighting : sightings(examination.job, "rendezvous-incomplete")) {
      if (sighting.place.known() && finding.locations.empty()) {
        finding.locations.push_back(
            location(sighting.place, finding.culprits, "the wait in new_group timed out here"));
      }
    }
    finding.evidence.push_back(
        {.rank = finding.culprits.front(), .text = "log: " + fact->text("line").value_or("")});
    finding.fix =
        "Call new_group() on every rank in the same order, including ranks that are not members. A "
        "library may call it: for each iterator of a data loader, for instance.";
    return finding;
  }
  return std::nullopt;
}

std::optional<Finding> roll_call_missed(const graph::Examination& examination,
                                        std::string_view kind, Meeting meeting) {
  for (const model::Fact* fact : model::facts(examination.job, model::kRollCall)) {
    if (fact->flag("first").value_or(false) != (meeting == Meeting::kFirst) ||
        is_new_group_of_few(*fact)) {
      continue;
    }
    Finding finding;
    finding.kind = kind;
    finding.confidence = Confidence::kLikely;
    finding.culprits = ranks_of(*fact, "absent");
    finding.waiting = ranks_of(*fact, "came").minus(finding.culprits);
    const std::string barrier = fact->text("barrier").value_or("");
    const std::string line = fact->text("line").value_or("");
    const std::string others = finding.waiting.empty() ? "the others" : said(finding.waiting);
    finding.summary = fmt::format("{} did not reach {}, where {} {}", said(finding.culprits),
                                  barrier, others, finding.waiting.size() == 1 ? "waits" : "wait");
    add_waiting_line(examination.job, line, finding);
    finding.evidence.push_back({.rank = {}, .text = "log: " + line});
    finding.fix =
        meeting == Meeting::kFirst
            ? fmt::format(
                  "Start {}, or lower the number of processes that the job expects. If {} "
                  "started, read {} output.",
                  said(finding.culprits), finding.culprits.size() == 1 ? "it was" : "they were",
                  finding.culprits.size() == 1 ? "its" : "their")
            : fmt::format(
                  "Run `ddpdoctor attach PID` while the next run waits: it shows what {} "
                  "instead.",
                  ranks_do(finding.culprits, "does", "do"));
    return finding;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
