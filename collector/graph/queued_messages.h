// SPDX-License-Identifier: Apache-2.0
// Messages that a host has posted and its GPU has not begun.
#pragma once

#include "collector/graph/blocked_call.h"
#include "collector/graph/history.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// `call` is a send or recv in which `rank` waits, and its peer has posted the other side behind an
/// older message of the same two ranks, which is open: NCCL runs their messages one after the
/// other. Messages of one line may be one batch, which begins as a whole.
bool is_queued(const model::JobModel& job, const History& history, model::Rank rank,
               const BlockedCall& call);

/// NCCL runs the messages of a batch together: of those of the rank's open batch that begins with
/// `first`, the one whose peer did not post the other side, if the counts show exactly one;
/// otherwise `first`.
const model::CollectiveCall& unanswered_of_batch(const History& history, model::Rank rank,
                                                 const model::CollectiveCall& first);

}  // namespace ddpdoctor::graph
