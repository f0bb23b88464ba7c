// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/queued_messages.h"

#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

bool older(const model::CollectiveCall& a, const model::CollectiveCall* b) {
  return b == nullptr || a.time.value_or(0) < b->time.value_or(0);
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
         oldest->call_site.known() && posted->call_site.known() &&
         oldest->call_site != posted->call_site;
}

}  // namespace ddpdoctor::graph
