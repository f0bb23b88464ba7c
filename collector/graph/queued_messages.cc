// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/queued_messages.h"

#include <algorithm>
#include <string>

#include "collector/graph/mpi_calls.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

bool older(const model::CollectiveCall& a, const model::CollectiveCall* b) {
  return b == nullptr || a.time.value_or(0) < b->time.value_or(0);
}

/// The rank's first message in the group is recorded: its messages can be counted.
bool is_whole(const History& history, model::Rank rank, const std::string& group) {
  const Calls& all = history.point_to_point(rank);
  const auto first = std::find_if(all.begin(), all.end(),
                                  [&group](const auto* call) { return call->group == group; });
  return first != all.end() && (*first)->sequence <= 1;
}

/// From two lines, or only one of them has begun.
bool are_two_batches(const model::CollectiveCall& oldest, const model::CollectiveCall& posted) {
  const bool began_alone =
      oldest.state == model::CallState::kStarted && posted.state == model::CallState::kEnqueued;
  return began_alone || (oldest.call_site.known() && posted.call_site.known() &&
                         oldest.call_site != posted.call_site);
}

}  // namespace

bool is_queued(const model::JobModel& job, const History& history, model::Rank rank,
               const BlockedCall& call) {
  const model::ProcessGroup* group = model::group(job, call.group);
  if (!call.peer || group == nullptr || !model::is_of_nccl(*group)) {
    return false;
  }
  const std::string_view counterpart = call.operation == "send" ? "recv" : "send";
  const model::CollectiveCall* oldest = nullptr;
  const model::CollectiveCall* posted = nullptr;
  for (const model::CollectiveCall* one : history.point_to_point(*call.peer)) {
    if (model::is_over(one->state) || one->group != call.group || one->peer != rank) {
      continue;
    }
    oldest = older(*one, oldest) ? one : oldest;
    posted = one->operation == counterpart && older(*one, posted) ? one : posted;
  }
  return posted != nullptr && posted != oldest && oldest->time && posted->time &&
         are_two_batches(*oldest, *posted);
}

const model::CollectiveCall& unanswered_of_batch(const History& history, model::Rank rank,
                                                 const model::CollectiveCall& first) {
  const model::CollectiveCall* found = nullptr;
  for (const model::CollectiveCall* call : history.point_to_point(rank)) {
    const bool in_batch = call->group == first.group && call->sequence == first.sequence &&
                          call->call_site == first.call_site && call->state == first.state;
    if (!in_batch) {
      continue;
    }
    if (!call->peer || !is_whole(history, rank, call->group) ||
        !is_whole(history, *call->peer, call->group)) {
      return first;
    }
    if (is_matched(history, rank, blocked_in(*call)) == false) {
      if (found != nullptr) {
        return first;
      }
      found = call;
    }
  }
  return found == nullptr ? first : *found;
}

}  // namespace ddpdoctor::graph
