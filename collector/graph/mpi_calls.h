// SPDX-License-Identifier: Apache-2.0
// Functions of MPI's C interface on a stack, in words of torch.distributed.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "collector/graph/standing.h"

namespace ddpdoctor::graph {

/// What a thread that stands in this function does; an empty operation = told by its records.
struct MpiFunction {
  std::string_view name;  // without MPI_
  std::string_view operation;
  Activity activity = Activity::kCollective;
};

/// The function of MPI that these frames (innermost first) stand in: the outermost, which is the
/// program's own call. nullptr when there is none or it does not wait. mpi4py makes several calls
/// of one (`allreduce` of an object receives and broadcasts): where none is recorded, it is that
/// one.
const MpiFunction* mpi_function(std::span<const model::Frame> frames, bool recorded = true);

/// The call that a rank in `function` is blocked in, completed by its records. A wait is in the
/// call it waits for: `activity` becomes that one's.
BlockedCall call_of_mpi(const MpiFunction& function, model::Rank rank, const History& history,
                        Activity& activity);

/// The call is one of several that a collective method of mpi4py's is made of: `activity` and
/// `call` become that method's, in the same communicator and without a number there.
bool take_method_of_mpi4py(std::span<const model::Frame> frames, Activity& activity,
                           BlockedCall& call);

/// Where most ranks stand in one wait of which nobody recorded what for, and all others in a
/// collective, the wait is a collective's, too (MPI_Iallreduce), and the others are the odd ones.
void take_common_wait_for_a_collective(std::vector<Standing>& ranks);

/// Whether the other side of a send or receive has done its part, by counting messages between the
/// two with this tag; nothing when the records do not tell.
std::optional<bool> is_matched(const History& history, model::Rank rank, const BlockedCall& call);

}  // namespace ddpdoctor::graph
