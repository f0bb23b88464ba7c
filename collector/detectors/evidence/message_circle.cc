// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/message_circle.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/message_tags.h"
#include "collector/detectors/evidence/wording.h"

namespace ddpdoctor::detectors {
namespace {

/// Its calls like the current one had other peers, too: the order of its messages may be wrong, and
/// not the peer.
bool has_several_peers(const graph::Examination& examination, model::Rank rank) {
  const graph::BlockedCall& now = *examination.standing(rank)->call;
  const graph::Calls& calls = examination.history.point_to_point(rank);
  return std::any_of(calls.begin(), calls.end(), [&now](const model::CollectiveCall* call) {
    return call->operation == now.operation && call->peer && call->peer != now.peer;
  });
}

}  // namespace

std::string said_of_message(const graph::Standing& standing) {
  const graph::BlockedCall& call = *standing.call;
  if (!call.peer) {
    return fmt::format("rank {} is waiting in {}", standing.rank,
                       call.operation.empty() ? "a receive" : call.operation);
  }
  const std::string tag = tag_of(standing);
  return fmt::format("rank {} is waiting in {} {} rank {}{}", standing.rank, call.operation,
                     call.operation == "send" ? "to" : "from", *call.peer,
                     tag.empty() || tag == "0" ? "" : fmt::format(" with tag {}", tag));
}

model::RankSet odd_in_circle(const graph::Examination& examination, const model::RankSet& circle) {
  std::map<model::Rank, std::string> said_by;
  for (const model::Rank rank : circle) {
    said_by[rank] = examination.standing(rank)->call->operation;
  }
  const auto sides = camps(said_by);
  if (std::any_of(circle.begin(), circle.end(), [&examination](model::Rank rank) {
        return has_several_peers(examination, rank);
      })) {
    return circle;
  }
  return circle.size() > 2 && sides.size() == 2 && sides[1].ranks.size() == 1 ? sides[1].ranks
                                                                              : circle;
}

std::optional<std::string> other_peer(const graph::Examination& examination,
                                      const model::RankSet& circle, const model::RankSet& odd) {
  if (odd.size() != 1 || circle.size() < 3) {
    return std::nullopt;
  }
  const graph::Standing& one = *examination.standing(odd.front());
  const auto partner = std::find_if(circle.begin(), circle.end(), [&](model::Rank rank) {
    return examination.standing(rank)->call->peer == one.rank;
  });
  const bool sends = one.call->operation == "send";
  return fmt::format(
      "Check the peer in {}{}: rank {} {} rank {}, but rank {} is the one that {} rank {}.",
      one.call->operation, one.user.known() ? fmt::format(" ({})", line_of(one.user)) : "",
      one.rank, sends ? "sends to" : "receives from", *one.call->peer, *partner,
      sends ? "receives from" : "sends to", one.rank);
}

bool only_tags_differ(const graph::Examination& examination, const model::RankSet& circle) {
  const graph::Standing& one = *examination.standing(circle.front());
  const graph::Standing& other = *examination.standing(circle.values().back());
  return circle.size() == 2 && tags_differ(one, other) && one.call->peer == other.rank &&
         other.call->peer == one.rank && one.call->operation != other.call->operation;
}

std::optional<std::string> all_do_the_same(const graph::Examination& examination,
                                           const model::RankSet& circle) {
  const std::string operation = examination.standing(circle.front())->call->operation;
  const bool same = std::all_of(circle.begin(), circle.end(), [&](model::Rank rank) {
    return examination.standing(rank)->call->operation == operation;
  });
  const bool sends = operation == "send";
  if (!same || circle.size() < 2 || (!sends && operation != "recv")) {
    return std::nullopt;
  }
  const bool two = circle.size() == 2;
  return fmt::format("{} are {} waiting in {}; {} {}", said(circle), two ? "both" : "all",
                     operation, two ? "neither" : "none of them", sends ? "receives" : "sends");
}

}  // namespace ddpdoctor::detectors
