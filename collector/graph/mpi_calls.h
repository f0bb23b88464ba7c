// SPDX-License-Identifier: Apache-2.0
// Maps functions of MPI's C interface on a stack to operations of torch.distributed.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collector/graph/standing.h"

namespace ddpdoctor::graph {

/// What a thread in this function does; an empty operation means that the records show it.
struct MpiFunction {
  std::string_view name;  // name without MPI_
  std::string_view operation;
  Activity activity = Activity::kCollective;
};

/// The MPI function of these frames (innermost first): the outermost one, which is the program's
/// own call. nullptr if there is none or it does not wait. One method of mpi4py may make several
/// calls (`allreduce` of an object receives and broadcasts): if none is recorded, the method itself
/// is returned.
const MpiFunction* mpi_function(std::span<const model::Frame> frames, bool recorded = true);

/// The call that a rank in `function` is blocked in, completed from its records. A wait becomes the
/// call it waits for: `activity` changes accordingly.
BlockedCall call_of_mpi(const MpiFunction& function, model::Rank rank, const History& history,
                        Activity& activity);

/// True if the call is one of several that a collective method of mpi4py consists of: `activity`
/// and `call` become those of the method, in the same communicator and without a sequence number.
bool take_method_of_mpi4py(std::span<const model::Frame> frames, Activity& activity,
                           BlockedCall& call);

/// If most ranks are in one wait with no recorded request and all others are in a collective, the
/// wait belongs to a collective, too (MPI_Iallreduce), and the others are the minority.
void take_common_wait_for_a_collective(std::vector<Standing>& ranks);

/// Whether the peer of a send or receive has done its part, by counting messages between the two
/// with this tag; nothing if the records do not show it.
std::optional<bool> is_matched(const History& history, model::Rank rank, const BlockedCall& call);

}  // namespace ddpdoctor::graph
