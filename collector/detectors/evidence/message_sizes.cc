// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/message_sizes.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace ddpdoctor::detectors {
namespace {

using Messages = std::vector<const model::CollectiveCall*>;

bool is_either(const model::CollectiveCall& call, std::string_view plain, std::string_view async) {
  return call.operation == plain || call.operation == async;
}

bool is_send(const model::CollectiveCall& call) {
  return is_either(call, "send", "isend");
}

bool is_receive(const model::CollectiveCall& call) {
  return is_either(call, "recv", "irecv");
}

/// The messages of `rank` to (or from) `peer` with this tag, in order.
Messages messages(const graph::Examination& examination, model::Rank rank,
                  bool (*direction)(const model::CollectiveCall&),
                  const model::CollectiveCall& like, model::Rank peer) {
  Messages out;
  for (const model::CollectiveCall* call : examination.history.point_to_point(rank)) {
    if (direction(*call) && call->group == like.group && call->peer == peer &&
        call->tag.value_or(0) == like.tag.value_or(0)) {
      out.push_back(call);
    }
  }
  return out;
}

/// It receives from any rank: its messages cannot be attributed to senders.
bool receives_from_anybody(const graph::Examination& examination, model::Rank rank) {
  const auto& all = examination.history.point_to_point(rank);
  return std::any_of(all.begin(), all.end(), [](const model::CollectiveCall* call) {
    return is_receive(*call) && !call->peer;
  });
}

}  // namespace

std::optional<UnlikeMessage> overlong_message(const graph::Examination& examination,
                                              model::Rank rank) {
  const auto& all = examination.history.point_to_point(rank);
  if (all.empty() || !examination.job.history_complete ||
      examination.job.coverage.events_lost > 0) {
    return std::nullopt;
  }
  const model::CollectiveCall& last = *all.back();
  if (!is_receive(last) || !last.peer || !last.count || model::is_over(last.state) ||
      receives_from_anybody(examination, rank)) {
    return std::nullopt;
  }
  const Messages received = messages(examination, rank, is_receive, last, *last.peer);
  const Messages sent = messages(examination, *last.peer, is_send, last, rank);
  if (received.size() > sent.size()) {
    return std::nullopt;
  }
  const model::CollectiveCall& message = *sent[received.size() - 1];
  const bool longer = message.count && message.dtype == last.dtype && *message.count > *last.count;
  return longer ? std::optional(UnlikeMessage{.sent = &message, .received = &last}) : std::nullopt;
}

}  // namespace ddpdoctor::detectors
