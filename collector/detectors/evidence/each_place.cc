// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/each_place.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/waited_for.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

std::string common_whereabouts(const graph::Examination& examination, const model::RankSet& ranks) {
  const graph::Standing* first = examination.standing(ranks.front());
  const std::string text = whereabouts(examination.job, *first);
  const bool all = std::all_of(ranks.begin(), ranks.end(), [&](model::Rank rank) {
    return whereabouts(examination.job, *examination.standing(rank)) == text;
  });
  return all && ranks.size() > 1 && first->user.known()
             ? whereabouts(examination.job, ranks, *first)
             : std::string();
}

std::string cut_stacks_said(const graph::Examination& examination) {
  const model::RankSet ranks = unobserved_ranks(examination);
  const bool cut = std::all_of(ranks.begin(), ranks.end(), [&](model::Rank rank) {
    const graph::Standing* standing = examination.standing(rank);
    return standing != nullptr && standing->process != nullptr &&
           model::was_dumped(*standing->process) &&
           !standing->process->threads.front().frames.empty();
  });
  return cut && !ranks.empty()
             ? fmt::format("the stacks of {} are cut off before the call they are in", said(ranks))
             : std::string();
}

void tell_each_place(const graph::Examination& examination, const model::RankSet& ranks,
                     Finding& finding) {
  constexpr std::size_t kMostPlaces = 4;
  std::map<model::Rank, std::string> said_of;
  for (const model::Rank rank : ranks) {
    said_of[rank] = whereabouts(examination.job, *examination.standing(rank));
  }
  for (const Camp& camp : camps(said_of)) {
    const graph::Standing* standing = examination.standing(camp.ranks.front());
    if (standing->user.known() && finding.locations.size() < kMostPlaces) {
      finding.locations.push_back(
          location(standing->user, camp.ranks, waiting_here(examination.job, camp.ranks)));
      const auto waited = waited_for(examination.job, *standing);
      if (waited && waited->inside.known() && finding.locations.size() < kMostPlaces) {
        add_places(*waited, finding);
      }
    }
  }
  add_whereabouts(finding, examination, ranks);
}

}  // namespace ddpdoctor::detectors
