// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/roll_calls.h"

#include <string>

#include <fmt/format.h>

#include "collector/detectors/evidence/wording.h"
#include "collector/model/listed_ranks.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors {
namespace {

model::RankSet ranks_of(const model::Fact& fact, const std::string& field) {
  return model::RankSet(model::listed_ranks(fact.text(field).value_or("")).ranks);
}

}  // namespace

std::optional<Finding> roll_call_missed(const graph::Examination& examination,
                                        std::string_view kind, Meeting meeting) {
  for (const model::Fact* fact : model::facts(examination.job, model::kRollCall)) {
    if (fact->flag("first").value_or(false) != (meeting == Meeting::kFirst)) {
      continue;
    }
    Finding finding;
    finding.kind = kind;
    finding.confidence = Confidence::kLikely;
    finding.culprits = ranks_of(*fact, "absent");
    finding.waiting = ranks_of(*fact, "came").minus(finding.culprits);
    const std::string barrier = fact->text("barrier").value_or("");
    const std::string others = finding.waiting.empty() ? "the others" : said(finding.waiting);
    finding.summary = fmt::format("{} did not reach {}, where {} {}", said(finding.culprits),
                                  barrier, others, finding.waiting.size() == 1 ? "waits" : "wait");
    finding.evidence.push_back({.rank = {}, .text = "log: " + fact->text("line").value_or("")});
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
