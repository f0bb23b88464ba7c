// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/polls_outside_rendezvous.h"

#include <map>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {

std::optional<Finding> polls_outside_rendezvous(const graph::Examination& examination,
                                                const model::RankSet& arrived) {
  Finding finding;
  std::map<model::CallSite, model::RankSet> places;
  for (const graph::Standing& standing : examination.standings) {
    if (arrived.contains(standing.rank) || standing.waits_for_ranks()) {
      continue;
    }
    const bool polling = standing.thread != nullptr && standing.user.known() &&
                         sleeps_by_choice(*standing.thread) &&
                         polls(examination.job, *standing.thread);
    if (!polling) {
      return std::nullopt;
    }
    finding.culprits.insert(standing.rank);
    places[standing.user].insert(standing.rank);
  }
  if (finding.culprits.empty() || examination.job.progress != model::Progress::kStill) {
    return std::nullopt;
  }
  finding.kind = "rendezvous-incomplete";
  finding.confidence = Confidence::kPossible;  // what they poll for may come
  for (const auto& [site, ranks] : places) {
    finding.locations.push_back(location(site, ranks, ranks_do(ranks, "polls here", "poll here")));
  }
  add_waiting(examination, finding);
  finding.summary =
      fmt::format("{} in the rendezvous for {}, which {} ({}) and {} not called init_process_group",
                  ranks_do(arrived, "waits", "wait"), said(finding.culprits),
                  finding.culprits.size() == 1 ? "polls" : "poll", place(places.begin()->first),
                  has_or_have(finding.culprits));
  finding.fix =
      "Call init_process_group on every rank that `world_size` counts, or pass the number of the "
      "ranks that call it. If what is polled for comes from the ranks in the rendezvous, move the "
      "loop behind init_process_group.";
  return finding;
}

}  // namespace ddpdoctor::detectors
