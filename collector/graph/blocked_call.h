// SPDX-License-Identifier: Apache-2.0
// What a blocked call was given, from the locals of torch.distributed's frames and from the newest
// record of the rank.
#pragma once

#include <optional>
#include <span>

#include "collector/graph/history.h"
#include "collector/graph/standing.h"

namespace ddpdoctor::graph {

/// Reads the arguments of the innermost operation among these frames; nullopt when there is no
/// operation.
std::optional<BlockedCall> call_in_frames(const model::JobModel& job,
                                          std::span<const stacks::Frame> frames);

/// The same for a stack without Python frames (gdb, eu-stack): the operation in it, or, where it
/// waits for gloo, the one that gloo's worker of this process stands in.
std::optional<BlockedCall> call_without_python(const model::Process& process,
                                               const model::Thread& thread);

/// Fills what the stack did not tell from the rank's newest record that fits: sequence number,
/// group, operation, shape.
void complete_from_history(BlockedCall& call, Activity activity, model::Rank rank,
                           const model::JobModel& job, const History& history);

/// A recorded call as one that a rank is blocked in.
BlockedCall blocked_in(const model::CollectiveCall& record);

/// Whether the newest record of a rank is not known to be complete: a host waits for its GPU in it.
bool has_unfinished_call(const History& history, model::Rank rank);

/// The oldest call of a rank that its GPU has not finished, with a known state and line; null when
/// there is none. A host that waits for its GPU waits for this one, wherever the host itself has
/// come to.
const model::CollectiveCall* unfinished_on_gpu(const History& history, model::Rank rank);

/// The same, where it is a message: a collective that the host stands in is queued behind it.
const model::CollectiveCall* open_message_on_gpu(const History& history, model::Rank rank);

/// The call of which the thread asks NCCL again and again how it goes; null when it asks of none.
const model::CollectiveCall* polled_call(const model::Thread& thread, const History& history,
                                         model::Rank rank);

/// The id of the group of all ranks: "default_pg", "0" (torch's own name for it), or the only one
/// known; empty = unknown.
std::string world_group(const model::JobModel& job);

}  // namespace ddpdoctor::graph
