// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/left_exchange.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Standing;

struct Leavers {
  model::RankSet ranks;
  LeftLoop loop;
};

bool may_be_partner(const Standing& standing, const Standing& other) {
  const bool is_peer = !standing.call->peer || *standing.call->peer == other.rank;
  return is_peer && other.rank != standing.rank && other.thread != nullptr &&
         other.activity != graph::Activity::kPointToPoint;
}

std::optional<Leavers> leavers(const graph::Examination& examination, const Standing& standing) {
  std::optional<Leavers> found;
  for (const Standing& other : examination.standings) {
    if (!may_be_partner(standing, other)) {
      continue;
    }
    const auto fork = fork_of(other.callers, standing.callers);
    auto loop = fork ? left_loop(examination.job, *fork) : std::nullopt;
    if (!is_over_batches(loop) || !loop->ours_left) {
      return std::nullopt;
    }
    found = found ? std::move(found) : Leavers{.ranks = {}, .loop = std::move(*loop)};
    found->ranks.insert(other.rank);
  }
  return found;
}

}  // namespace

void tell_left_exchange(const graph::Examination& examination, const Standing& standing,
                        Finding& finding) {
  const auto left = leavers(examination, standing);
  if (!left) {
    return;
  }
  finding.culprits = left->ranks;
  finding.waiting = waiting_ranks(examination).minus(left->ranks);
  finding.summary =
      fmt::format("{} left `{}` ({}) earlier than rank {}, which is waiting in {}",
                  said(left->ranks), left->loop.header, line_of(left->loop.where), standing.rank,
                  standing.call->operation.empty() ? "a receive" : standing.call->operation);
  finding.locations.insert(finding.locations.begin(),
                           location(left->loop.where, left->ranks,
                                    fmt::format("{} left this loop earlier", said(left->ranks))));
  finding.fix =
      "Give every rank the same number of iterations of this loop: a stage that skips a batch also "
      "skips its messages.";
}

}  // namespace ddpdoctor::detectors
