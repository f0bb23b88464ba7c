// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/behind_gpus.h"

#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/device_waits.h"

namespace ddpdoctor::detectors {
namespace {

bool has_ended(const graph::Standing& standing) {
  using enum graph::Activity;
  return standing.activity == kDead || standing.activity == kExited ||
         standing.activity == kAbsent || standing.activity == kUnobserved;
}

/// No rank's stack changed: a step that makes progress would change one.
bool nobody_moved(const graph::Examination& examination) {
  return std::none_of(examination.standings.begin(), examination.standings.end(),
                      [](const graph::Standing& standing) { return standing.moved; });
}

}  // namespace

bool is_gpu_job(const graph::Examination& examination) {
  return std::any_of(examination.standings.begin(), examination.standings.end(),
                     [&examination](const graph::Standing& standing) {
                       return standing.process != nullptr &&
                              graph::is_on_gpu(examination.job, *standing.process);
                     });
}

model::RankSet behind_their_gpus(const graph::Examination& examination) {
  if (!examination.history.empty()) {
    return {};
  }
  return ranks_where(examination, [](const graph::Standing& standing) {
    return standing.activity == graph::Activity::kGpu;
  });
}

model::RankSet stay_at_their_lines(const graph::Examination& examination) {
  using enum graph::Activity;
  const model::RankSet stay = ranks_where(examination, [&](const graph::Standing& standing) {
    const bool unnamed = standing.activity == kGpu || standing.activity == kComputing ||
                         standing.activity == kUnknown || standing.activity == kQueue;
    return unnamed && !standing.moved && standing.user.known() && standing.process != nullptr &&
           graph::is_on_gpu(examination.job, *standing.process);
  });
  const bool all = stay.size() > 1 && stay.size() == examination.standings.size();
  return all && examination.still() && !examination.job.ended && examination.history.empty()
             ? stay
             : model::RankSet{};
}

std::optional<Finding> elsewhere_than_gpus(const graph::Examination& examination) {
  const model::RankSet behind = behind_their_gpus(examination);
  const model::RankSet others = ranks_where(examination, [](const graph::Standing& standing) {
    return standing.activity != graph::Activity::kGpu;
  });
  const bool all_seen = std::all_of(others.begin(), others.end(), [&](model::Rank rank) {
    const graph::Standing* standing = examination.standing(rank);
    return standing != nullptr && !has_ended(*standing) && standing->user.known() &&
           !standing->waits_for_ranks() && !(examination.still() && standing->on_cpu);
  });
  if (others.empty() || behind.size() <= others.size() || !all_seen || !may_hang(examination) ||
      !nobody_moved(examination)) {
    return std::nullopt;
  }
  const graph::Standing& there = *examination.standing(others.front());
  const graph::Standing& here = *examination.standing(behind.front());
  Finding finding;
  finding.kind = "missing-rank";
  finding.confidence = Confidence::kPossible;
  finding.culprits = others;
  finding.waiting = behind;
  finding.summary =
      fmt::format("{}; {}, where a queued collective may need {}",
                  whereabouts(examination.job, {there.rank}, there),
                  ranks_do(behind, "is waiting for its GPU", "are waiting for their GPUs"),
                  others.size() == 1 ? std::string("it") : said(others));
  finding.fix = fmt::format(
      "Check why rank {} does not return ({}). A flight-recorder dump (TORCH_FR_BUFFER_SIZE=2000) "
      "or `ddpdoctor run` names the collective.",
      there.rank, place(there.user));
  finding.locations.push_back(
      location(there.user, others, ranks_do(others, "is here", "are here")));
  finding.locations.push_back(
      location(here.user, behind,
               waiting_here(examination.job, behind,
                            behind.size() == 1 ? "for its GPU" : "for their GPUs")));
  add_whereabouts(finding, examination, others);
  return finding;
}

}  // namespace ddpdoctor::detectors
