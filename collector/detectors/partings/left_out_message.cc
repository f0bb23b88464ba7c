// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/left_out_message.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/outcomes.h"
#include "collector/detectors/partings/parting_words.h"
#include "collector/detectors/paths/call_runs.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/graph/history.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/deciding.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Standing;

/// What the peer should have done: the opposite of what the rank waits in.
std::string_view missing_half(const Standing& standing) {
  return standing.call->operation == "recv" || standing.call->operation == "irecv" ? "send"
                                                                                   : "recv";
}

bool is_half(std::string_view made, std::string_view operation) {
  return made == operation || made == "i" + std::string(operation);
}

/// The other ranks that made the message since the last collective that all of them completed; the
/// peer made the same message, from the same lines, in an earlier round.
struct Round {
  model::RankSet made;
  Path message;  // of the first of them
};

/// The rank's message with `standing` after its collective before `next`; nullopt if that
/// collective is not recorded.
std::optional<const model::CollectiveCall*> message_before(const graph::Examination& examination,
                                                           const Standing& standing,
                                                           const model::CollectiveCall& next,
                                                           model::Rank rank) {
  const model::CollectiveCall* const before =
      examination.history.at(next.group, rank, next.sequence - 1);
  if (before == nullptr || !before->time) {
    return std::nullopt;
  }
  const graph::Calls& all = examination.history.point_to_point(rank);
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto* call) {
    return call->peer == standing.rank && is_half(call->operation, missing_half(standing)) &&
           call->time && *call->time > *before->time;
  });
  return found == all.end() ? nullptr : *found;
}

std::optional<Round> round_without(const graph::Examination& examination, const Standing& standing,
                                   const model::CollectiveCall& next) {
  const auto own = message_before(examination, standing, next, next.rank);
  if (!own || *own != nullptr) {
    return std::nullopt;
  }
  Round round;
  const graph::Calls& before = examination.history.point_to_point(next.rank);
  for (const Standing& other : examination.standings) {
    const bool third = other.rank != standing.rank && other.rank != next.rank;
    const auto message =
        third ? message_before(examination, standing, next, other.rank) : std::nullopt;
    const auto made_it = [&](const model::CollectiveCall* earlier) {
      return earlier->peer == standing.rank && earlier->operation == (*message)->operation &&
             same_path(graph::callers_of(*earlier), graph::callers_of(**message));
    };
    if (message && *message != nullptr && std::any_of(before.begin(), before.end(), made_it)) {
      round.made.insert(other.rank);
      round.message = round.message.empty() ? graph::callers_of(**message) : round.message;
    }
  }
  return round.message.empty() ? std::nullopt : std::optional(std::move(round));
}

/// Without records: other ranks stand in that message with `standing`, and wait for their turn.
std::optional<Round> round_of_waiting(const graph::Examination& examination,
                                      const Standing& standing, const Standing& peer) {
  Round round;
  for (const Standing& other : examination.standings) {
    const bool offers = other.activity == graph::Activity::kPointToPoint && other.call &&
                        other.call->peer == standing.rank &&
                        is_half(other.call->operation, missing_half(standing)) &&
                        fork_of(peer.callers, other.callers).has_value();
    if (offers) {
      round.made.insert(other.rank);
      round.message = round.message.empty() ? other.callers : round.message;
    }
  }
  return round.made.empty() ? std::nullopt : std::optional(std::move(round));
}

/// The only condition before the message in the functions that lead to it: the peer ran them, too.
std::optional<Branch> only_condition(const model::JobModel& job, const Path& below) {
  std::optional<Branch> found;
  for (const model::CallSite& site : below) {
    const program::SourceText& lines = lines_of(job, site.file);
    for (const program::Block& block : program::deciding_branches(lines, site.line)) {
      const auto on =
          is_loop(block) ? program::Dependence::kRank : dependence_of(origin_of(job, lines, block));
      if (on == program::Dependence::kRank) {
        continue;
      }
      if (found) {
        return std::nullopt;
      }
      found = branch_of(block, site, on, false);
    }
  }
  return found;
}

/// The condition that leads to the message and not to the peer's collective.
std::optional<Branch> choice(const model::JobModel& job, const Path& next, const Path& message) {
  auto fork = fork_of(next, message);
  if (!fork) {
    return std::nullopt;
  }
  fork->below_ours.clear();  // nothing leads to the collective: all ranks call it
  auto branch = only_condition(job, fork->below_theirs);
  branch = branch ? std::move(branch) : data_branch(job, *fork);
  return branch && !branch->leads_to_ours ? std::move(branch) : any_branch(job, *fork);
}

}  // namespace

void tell_left_out_message(const graph::Examination& examination, const Standing& standing,
                           Finding& finding) {
  const Standing* const peer = examination.standing(standing.call->peer.value_or(-1));
  const model::CollectiveCall* const next =
      peer == nullptr || !peer->call || peer->activity != graph::Activity::kCollective
          ? nullptr
          : examination.history.last(peer->call->group, peer->rank);
  if (next == nullptr || model::is_over(next->state)) {
    return;
  }
  auto round = round_without(examination, standing, *next);
  const bool recorded = round || !examination.history.point_to_point(peer->rank).empty();
  round = recorded ? std::move(round) : round_of_waiting(examination, standing, *peer);
  const auto branch =
      round ? choice(examination.job, graph::callers_of(*next), round->message) : std::nullopt;
  const bool skipped_it = branch && !branch->leads_to_ours;
  // Without a condition that the peer skipped, `standing` may name the wrong peer.
  if (!round || (!recorded && !skipped_it)) {
    return;
  }
  const model::RankSet skipped{peer->rank};
  const std::string_view half = missing_half(standing);
  const std::string with = fmt::format("{} rank {}", half == "send" ? "to" : "from", standing.rank);
  finding.culprits = skipped;
  finding.waiting = waiting_ranks(examination).minus(skipped);
  finding.summary =
      fmt::format("rank {} did not {} {}, which is waiting in {}{}; {} did, and rank {} {}",
                  peer->rank, half, with, standing.call->operation, placed(standing.user),
                  said(round->made), peer->rank, whereabouts(examination.job, *peer));
  std::reverse(finding.locations.begin(), finding.locations.end());
  const model::CallSite& message = round->message.front();
  finding.locations.push_back(
      location(message, round->made, fmt::format("{} made {} here", said(round->made), half)));
  finding.fix = fmt::format(
      "Call {} ({}) on every path, also when there is nothing to exchange: pass an empty message, "
      "or send a flag first.",
      half, line_of(message));
  if (!skipped_it) {
    return;
  }
  finding.locations.insert(
      finding.locations.begin(),
      location(branch->where, {},
               fmt::format("leads to {}; rank {} skipped it", half, peer->rank)));
  add_outcomes_of(examination.job,
                  {.decision = branch->where,
                   .condition = branch->condition,
                   .reached = branch->guarded.line,
                   .there = &round->made,
                   .others = &skipped},
                  finding);
  finding.summary = fmt::format(
      "{} ({}) differed between rank {} and {}, so rank {} did not {} {}, which is waiting in {}{}",
      in_backquotes(branch->condition), line_of(branch->where), peer->rank, said(round->made),
      peer->rank, half, with, standing.call->operation, placed(standing.user));
}

}  // namespace ddpdoctor::detectors
