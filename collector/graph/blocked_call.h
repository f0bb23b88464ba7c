// SPDX-License-Identifier: Apache-2.0
// The arguments of a blocked call, from the locals of torch.distributed's frames and from the
// rank's newest record.
#pragma once

#include <optional>
#include <span>

#include "collector/graph/history.h"
#include "collector/graph/standing.h"

namespace ddpdoctor::graph {

/// Reads the arguments of the innermost operation among these frames; nullopt if there is no
/// operation.
std::optional<BlockedCall> call_in_frames(const model::JobModel& job,
                                          std::span<const stacks::Frame> frames);

/// The same for a stack without Python frames (gdb, eu-stack): the operation in it or, if it waits
/// for gloo, the operation that gloo's worker thread in this process is in.
std::optional<BlockedCall> call_without_python(const model::Process& process,
                                               const model::Thread& thread);

/// Fills what the stack did not show from the rank's newest matching record: sequence number,
/// group, operation, shape. `where`: the rank and the thread that is in the call.
void complete_from_history(BlockedCall& call, const Standing& where, const model::JobModel& job,
                           const History& history);

/// Makes a blocked call of a recorded call.
BlockedCall blocked_in(const model::CollectiveCall& record);

/// True if the rank's newest record may be incomplete: the host waits for its GPU in it.
bool has_unfinished_call(const History& history, model::Rank rank);

/// The oldest call of a rank that its GPU has not finished, with a known state and line; null if
/// there is none. A host that waits for its GPU waits for this call, whatever its own current line.
const model::CollectiveCall* unfinished_on_gpu(const History& history, model::Rank rank);

/// The same if the host is in a collective that is queued behind it: it is a message, or was made
/// at another line by another operation. all_gather_object
/// reads a value from the GPU before it makes its own calls.
const model::CollectiveCall* unfinished_before(const History& history, const Standing& host,
                                               const model::Thread& thread);

/// The call whose state the thread polls from NCCL; null if it polls none.
const model::CollectiveCall* polled_call(const model::Thread& thread, const History& history,
                                         model::Rank rank);

/// The id of the group of all ranks: "default_pg", "0" (torch's own name for it), or the only known
/// group; empty = unknown.
std::string world_group(const model::JobModel& job);

}  // namespace ddpdoctor::graph
