// SPDX-License-Identifier: Apache-2.0
// send and recv that never match: both receive first, both send first, a cycle, or a peer that is
// elsewhere.
#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/message_circle.h"
#include "collector/detectors/evidence/message_tags.h"
#include "collector/detectors/evidence/refused_pair.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/partings/cause.h"
#include "collector/detectors/partings/left_exchange.h"
#include "collector/detectors/partings/left_out_message.h"
#include "collector/detectors/partings/unseen_decision.h"
#include "collector/graph/mpi_calls.h"
#include "collector/graph/posted_messages.h"
#include "collector/graph/queued_messages.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::p2p_deadlock {
namespace {

using graph::Activity;
using graph::Standing;

bool exchanges(const Standing& standing) {
  return standing.activity == Activity::kPointToPoint;
}

// True if the peer must act: not if it has posted its side (the counts or tags show which belong
// together); a ring of sendrecv() serves itself.
bool blocks(const graph::Examination& examination, const Standing& standing) {
  if (standing.call->operation == "sendrecv") {
    return false;
  }
  // The counts are equal, but the messages are not meant for each other.
  const Standing* peer = examination.standing(standing.call->peer.value_or(-1));
  if (peer != nullptr && exchanges(*peer) && tags_differ(standing, *peer)) {
    return true;
  }
  const bool posted =
      peer != nullptr && peer->thread != nullptr && exchanges(*peer) &&
      graph::has_posted_for(peer->thread->frames, standing.call->operation, standing.rank);
  return !posted &&
         (graph::is_matched(examination.history, standing.rank, *standing.call) != true ||
          graph::is_queued(examination.job, examination.history, standing.rank, *standing.call));
}

// Follows peers from a rank until it reaches one already seen; empty if the chain ends elsewhere.
model::RankSet circle_from(const graph::Examination& examination, model::Rank start) {
  std::vector<model::Rank> path;
  model::Rank at = start;
  while (true) {
    const auto seen = std::find(path.begin(), path.end(), at);
    if (seen != path.end()) {
      return model::RankSet(std::vector<model::Rank>(seen, path.end()));
    }
    const Standing* standing = examination.standing(at);
    if (standing == nullptr || !exchanges(*standing) || !standing->call || !standing->call->peer ||
        !blocks(examination, *standing)) {
      return {};
    }
    path.push_back(at);
    at = *standing->call->peer;
  }
}

bool meets(const Standing& a, const Standing& b) {
  return a.call && b.call && a.call->peer == b.rank && b.call->peer == a.rank &&
         a.call->operation != b.call->operation && !tags_differ(a, b);
}

// A cycle of two in which one sends and the other receives is a transfer in progress, not a
// deadlock.
bool is_deadlock(const graph::Examination& examination, const model::RankSet& circle) {
  if (circle.size() != 2) {
    return circle.size() > 2 || circle.size() == 1;
  }
  return !meets(*examination.standing(circle.values()[0]),
                *examination.standing(circle.values()[1]));
}

void add_rank(const graph::Examination& examination, model::Rank rank, Finding& finding) {
  const Standing* standing = examination.standing(rank);
  finding.evidence.push_back({.rank = rank,
                              .text = said_of_message(*standing) + placed(standing->user),
                              .shown = Shown{.file = standing->user.file,
                                             .line = standing->user.line,
                                             .words = said_of_message(*standing)}});
  if (standing->user.known() && finding.locations.size() < 8) {
    finding.locations.push_back(location(*standing, said_of_message(*standing)));
  }
}

Finding circle_finding(const graph::Examination& examination, const model::RankSet& circle) {
  Finding finding;
  finding.kind = "p2p-deadlock";
  finding.confidence =
      examination.still() || examination.job.ended ? Confidence::kCertain : Confidence::kLikely;
  finding.culprits = odd_in_circle(examination, circle);
  finding.waiting = waiting_ranks(examination).minus(finding.culprits);
  std::vector<model::Rank> order = finding.culprits.values();
  for (const model::Rank rank : circle.minus(finding.culprits)) {
    order.push_back(rank);
  }
  std::vector<std::string> sentences;
  for (const model::Rank rank : order) {
    sentences.push_back(said_of_message(*examination.standing(rank)));
    add_rank(examination, rank, finding);
  }
  finding.summary =
      all_do_the_same(examination, circle).value_or(fmt::format("{}", fmt::join(sentences, "; ")));
  finding.fix = only_tags_differ(examination, circle)
                    ? "Pass the same tag on both sides: one of them counts one message more, or "
                      "numbers its messages differently."
                    : other_peer(examination, circle, finding.culprits)
                          .value_or(
                              "Send on one side of each pair while the other receives (order "
                              "by rank), or post both with batch_isend_irecv().");
  tell_left_in_circle(examination, circle, finding);
  return finding;
}

// Its own group cannot agree on a call, which blocks it.
bool held_up_by_others(const graph::Examination& examination, const Standing& standing) {
  const graph::GroupView* group = standing.call ? examination.group(standing.call->group) : nullptr;
  return group != nullptr && group->first_divergence &&
         group->first_divergence->about != graph::Disagreement::kMissing;
}

// The peer is elsewhere and waits, too; a peer that still works may only be late.
bool partner_never_comes(const graph::Examination& examination, const Standing& standing) {
  if (!standing.call || !standing.call->peer) {
    return false;
  }
  const Standing* peer = examination.standing(*standing.call->peer);
  // Its collective belongs to others: while one of them works, it may complete and the peer may
  // arrive.
  const graph::GroupView* group =
      peer != nullptr && peer->call ? examination.group(peer->call->group) : nullptr;
  const bool of_others = group != nullptr && !group->group.ranks.empty() &&
                         !model::RankSet(group->group.ranks).contains(standing.rank);
  if (of_others && !working_ranks(examination).empty()) {
    return false;
  }
  return peer != nullptr && peer->thread != nullptr && !exchanges(*peer) &&
         peer->waits_for_ranks() && !held_up_by_others(examination, *peer);
}

// All ranks outside the exchange wait in the same operation: a difference among them would be the
// cause.
bool others_agree(const graph::Examination& examination) {
  std::string operation;
  for (const Standing& standing : examination.standings) {
    const std::string own = standing.call ? standing.call->operation : std::string();
    if (exchanges(standing) || standing.activity == Activity::kExit || own.empty()) {
      continue;
    }
    if (!operation.empty() && operation != own) {
      return false;
    }
    operation = own;
  }
  return true;
}

// Ranks with unrecorded peers that all do the same: all send, or all receive. Then none of them has
// a peer.
Findings same_side(const graph::Examination& examination) {
  model::RankSet ranks;
  std::string operation;
  for (const Standing& standing : examination.standings) {
    if (!exchanges(standing) || !standing.call) {
      if (!standing.waits_for_ranks() || standing.on_cpu) {
        return {};
      }
      continue;
    }
    const std::string& own = standing.call->operation;
    if (standing.call->peer || (own != "send" && own != "recv") ||
        (!operation.empty() && operation != own)) {
      return {};
    }
    operation = own;
    ranks.insert(standing.rank);
  }
  if (ranks.size() < 2 || !others_agree(examination)) {
    return {};
  }
  Finding finding;
  finding.kind = "p2p-deadlock";
  finding.confidence = examination.still() ? Confidence::kCertain : Confidence::kLikely;
  finding.culprits = ranks;
  finding.waiting = waiting_ranks(examination).minus(ranks);
  finding.summary = fmt::format("{} are all waiting in {}; no rank {}", said(ranks), operation,
                                operation == "send" ? "receives" : "sends");
  for (const model::Rank rank : ranks) {
    add_rank(examination, rank, finding);
  }
  finding.fix =
      "Send on one side of each pair while the other receives (order by rank); or use a call that "
      "does both (sendrecv, batch_isend_irecv).";
  return {finding};
}

// Its calls use a group of its own that does not include the peer: a group rank may have been
// passed as a global rank.
bool takes_group_rank_for_rank(const graph::Examination& examination, const Standing& standing) {
  const model::Rank peer = *standing.call->peer;
  const auto& groups = examination.job.groups;
  return std::any_of(groups.begin(), groups.end(), [&](const model::ProcessGroup& group) {
    const model::RankSet members(group.ranks);
    return members.size() > 1 && members.size() < model::all_ranks(examination.job).size() &&
           members.contains(standing.rank) && !members.contains(peer) &&
           peer < static_cast<model::Rank>(members.size());
  });
}

// The peer is unknown (batch_isend_irecv, wait() of a handle): only if all others wait elsewhere.
bool others_all_wait(const graph::Examination& examination, const Standing& standing) {
  return std::all_of(
      examination.standings.begin(), examination.standings.end(), [&](const Standing& other) {
        return other.rank == standing.rank ||
               ((other.waits_for_ranks() || other.activity == Activity::kExit) && !other.on_cpu);
      });
}

Findings without_partner(const graph::Examination& examination) {
  Findings findings;
  for (const Standing& standing : examination.standings) {
    if (!exchanges(standing) || !standing.call) {
      continue;
    }
    const bool known = partner_never_comes(examination, standing);
    if (!known && (standing.call->peer || !others_all_wait(examination, standing) ||
                   !others_agree(examination))) {
      continue;
    }
    Finding finding;
    finding.kind = "p2p-deadlock";
    finding.confidence = known && examination.still() ? Confidence::kCertain : Confidence::kLikely;
    finding.culprits = {standing.rank};
    finding.waiting = waiting_ranks(examination).minus(finding.culprits);
    finding.summary = said_of_message(standing);
    add_rank(examination, standing.rank, finding);
    if (known) {
      const Standing* peer = examination.standing(*standing.call->peer);
      finding.summary +=
          fmt::format(", but rank {} {}", peer->rank, whereabouts(examination.job, *peer));
      finding.locations.push_back(location(*peer, fmt::format("rank {} is here", peer->rank)));
    }
    finding.fix =
        known && takes_group_rank_for_rank(examination, standing)
            ? "Pass global ranks in dst= and src=, also with a group; or use group_dst=, "
              "group_src= or dist.get_global_rank() for ranks of the group."
            : "Match every send with a recv: the same number of messages and the right peer, "
              "before the next collective.";
    tell_left_exchange(examination, standing, finding);
    tell_left_out_message(examination, standing, finding);
    findings.push_back(std::move(finding));
  }
  return findings;
}

// Whatever their peers are: if every rank of the job receives, no rank is left to send.
model::RankSet all_in_one_direction(const graph::Examination& examination) {
  model::RankSet ranks;
  for (const Standing& standing : examination.standings) {
    const Standing& first = examination.standings.front();
    if (!exchanges(standing) || !standing.call || standing.call->operation.empty() ||
        standing.call->peer || standing.call->operation != first.call->operation) {
      return {};
    }
    ranks.insert(standing.rank);
  }
  return examination.still() && ranks.size() > 1 ? ranks : model::RankSet{};
}

// A rank waits in a collective that another has gone past: those who wait for its messages, or for
// those of the other, do so because of that.
bool any_has_gone_past(const graph::Examination& examination) {
  const std::vector<Explanation>& all = explanations(examination);
  return std::any_of(all.begin(), all.end(), [](const auto& one) { return one.gone_past; });
}

Findings detect(const graph::Examination& examination) {
  if (!may_hang(examination)) {
    return {};
  }
  Findings findings = refused_pairs(examination, "p2p-deadlock");
  model::RankSet told;
  for (const Standing& standing : examination.standings) {
    if (!exchanges(standing) || told.contains(standing.rank)) {
      continue;
    }
    const model::RankSet circle = circle_from(examination, standing.rank);
    if (!circle.empty() && circle.common(told).empty() && is_deadlock(examination, circle)) {
      findings.push_back(circle_finding(examination, circle));
      told = told.united(circle);
    }
  }
  if (const auto all = all_in_one_direction(examination); findings.empty() && !all.empty()) {
    findings.push_back(circle_finding(examination, all));
  }
  if (findings.empty() && any_has_gone_past(examination)) {
    return {};
  }
  if (findings.empty()) {
    findings = same_side(examination);
  }
  findings = findings.empty() ? without_partner(examination) : findings;
  return findings.empty() ? unseen_findings(examination, "p2p-deadlock") : findings;
}

constexpr std::string_view kExplanation =
    R"(What you see: ranks are in send, recv or the wait() of such a handle; the others are in a later collective.

Why: a send completes only with its recv. Small sends may fit into a buffer, which hides the mistake until tensors grow. Two ranks
that both receive first wait forever; so do rings in which every rank sends first, and a recv whose peer has already sent everything.

How ddpdoctor knows: it follows each call to its peer, and gets back to the first rank, or to a rank that is not in the matching call.

Fix: pair the calls.

    -    dist.recv(theirs, peer); dist.send(mine, peer)
    +    ops = [dist.P2POp(dist.isend, mine, peer), dist.P2POp(dist.irecv, theirs, peer)]
    +    for work in dist.batch_isend_irecv(ops):
    +        work.wait()
)";

}  // namespace

extern const Detector detector;
const Detector detector = {.kind = "p2p-deadlock",
                           .title = "Sends and receives that do not match",
                           .explanation = kExplanation,
                           .detect = detect,
                           .specificity = kMechanism};

}  // namespace ddpdoctor::detectors::p2p_deadlock
