// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/left_exchange.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/loops_seen.h"
#include "collector/detectors/partings/outcomes.h"
#include "collector/detectors/partings/side_values.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/dependence.h"

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

model::RankSet all_but(const graph::Examination& examination, const Standing& standing) {
  return ranks_where(examination,
                     [&standing](const Standing& other) { return other.rank != standing.rank; });
}

/// The loop has a length of its own on the rank that waits: all others go over another one.
struct OddLength {
  std::int64_t own = 0;
  std::int64_t others = 0;
};

std::optional<OddLength> goes_over_another_number(const graph::Examination& examination,
                                                  const Standing& standing,
                                                  const model::CallSite& header) {
  const model::RankSet others = all_but(examination, standing);
  const auto own = length_gone_over(examination.job, header, model::RankSet{standing.rank});
  const auto theirs = length_gone_over(examination.job, header, others);
  return others.size() > 1 && own && theirs && *own != *theirs
             ? std::optional(OddLength{.own = *own, .others = *theirs})
             : std::nullopt;
}

/// Votes: of one waiting rank and its partners, the one whose loop is unlike all others' is odd.
void tell_odd_length(const graph::Examination& examination, const Standing& standing,
                     const LeftLoop& loop, const OddLength& odd, Finding& finding) {
  const model::RankSet own{standing.rank};
  const model::RankSet others = model::all_ranks(examination.job).minus(own);
  finding.culprits = own;
  finding.waiting = waiting_ranks(examination).minus(own);
  finding.summary = fmt::format(
      "rank {} goes over {} items in `{}` ({}), {} over {}; rank {} is waiting in {}",
      standing.rank, odd.own, loop.header, line_of(loop.where), said(others), odd.others,
      standing.rank, standing.call->operation.empty() ? "a receive" : standing.call->operation);
  finding.locations.push_back(
      location(loop.where, own, fmt::format("{} items on rank {}", odd.own, standing.rank)));
  finding.fix = fmt::format(
      "Give rank {} as many iterations of this loop as its partners: each message needs both "
      "sides.",
      standing.rank);
}

/// Two ranks of a circle, one of which has left a loop in which the other still exchanges.
struct LeftInCircle {
  const Standing* out = nullptr;
  const Standing* in = nullptr;
  LeftLoop loop;
};

bool has_length_by_rank(const model::JobModel& job, const LeftLoop& loop) {
  const auto& lines = lines_of(job, loop.where.file);
  const auto inside = lines.upper_bound(loop.where.line);
  const auto block =
      inside == lines.end() ? std::nullopt : program::loop_around(lines, inside->first);
  return block && block->line == loop.where.line &&
         dependence_of(origin_of(job, lines, *block)) == program::Dependence::kRank;
}

std::optional<LeftInCircle> left_in_circle(const graph::Examination& examination,
                                           const model::RankSet& circle) {
  for (const model::Rank rank : circle) {
    const Standing* const one = examination.standing(rank);
    const Standing* const peer = examination.standing(one->call->peer.value_or(-1));
    const auto fork = peer == nullptr || !circle.contains(peer->rank)
                          ? std::nullopt
                          : fork_of(peer->callers, one->callers);
    auto loop = fork ? left_loop(examination.job, *fork) : std::nullopt;
    if (!loop || !loop->ours_left || loop->over_keys || loop->way_out ||
        has_length_by_rank(examination.job, *loop)) {
      continue;
    }
    const auto own = loop_seen_at(examination.job, rank, loop->where);
    const auto total = own ? own->over.total() : std::nullopt;
    const auto done = length_gone_over(examination.job, loop->where, model::RankSet{peer->rank});
    if (!total || !done || *total != *done) {
      return LeftInCircle{.out = peer, .in = one, .loop = std::move(*loop)};
    }
  }
  return std::nullopt;
}

}  // namespace

void tell_left_in_circle(const graph::Examination& examination, const model::RankSet& circle,
                         Finding& finding) {
  const auto found = left_in_circle(examination, circle);
  if (!found) {
    return;
  }
  const model::RankSet out{found->out->rank};
  const model::RankSet in{found->in->rank};
  const LeftLoop& loop = found->loop;
  const auto seen = loop_seen_at(examination.job, found->in->rank, loop.where);
  const std::string steps = seen && seen->over.total()
                                ? fmt::format(" ({} of {})", *seen->over.done, *seen->over.total())
                                : std::string();
  // Votes: the loop of the one that is still in it is longer or shorter than those of all others.
  const model::RankSet others = all_but(examination, *found->in);
  const auto theirs = length_gone_over(examination.job, loop.where, others);
  if (others.size() > 1 && theirs && seen && seen->over.total() && *seen->over.total() != *theirs) {
    finding.culprits = in;
    finding.waiting = waiting_ranks(examination).minus(in);
  }
  finding.summary +=
      fmt::format("; rank {} left `{}` ({}), rank {} is still in it{}", found->out->rank,
                  loop.header, line_of(loop.where), found->in->rank, steps);
  finding.locations.insert(finding.locations.begin(),
                           location(loop.where, {},
                                    fmt::format("rank {} left this loop, rank {} did not",
                                                found->out->rank, found->in->rank)));
  add_loop_outcome(examination.job,
                   {.loop = loop.where, .header = loop.header, .left = &out, .inside = &in},
                   finding);
  const Parting parting{
      .group = {},
      .sequence = std::nullopt,
      .odd = {.ranks = out, .operation = {}, .path = found->out->callers, .standing = found->out},
      .rest = {.ranks = in, .operation = {}, .path = found->in->callers, .standing = found->in},
      .unobserved = {}};
  for (std::string& sentence : unlike_values(examination.job, parting)) {
    finding.evidence.push_back({.rank = std::nullopt, .text = std::move(sentence)});
  }
  finding.fix = fmt::format(
      "Give all ranks the same number of iterations of `{}`: compute it in one way on every stage, "
      "or send it along with the first message.",
      loop.header);
}

void tell_left_exchange(const graph::Examination& examination, const Standing& standing,
                        Finding& finding) {
  const auto left = leavers(examination, standing);
  if (!left) {
    return;
  }
  if (const auto odd = goes_over_another_number(examination, standing, left->loop.where)) {
    tell_odd_length(examination, standing, left->loop, *odd, finding);
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
