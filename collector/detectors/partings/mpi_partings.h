// SPDX-License-Identifier: Apache-2.0
// Special cases for MPI jobs: ranks continue after a call with a root as soon as their own part is
// done, one method of mpi4py makes several calls, and the numbers of calls in the communicators of
// one split show which rank made one too many.
#pragma once

#include <vector>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// From stacks alone: some ranks wait in a call with a root, which others may have left legally.
/// Determines which rank skipped it (or made it alone) if the source or the lines show it;
/// otherwise no rank is odd and `undecided` is set.
void settle_rooted(const graph::Examination& examination, Parting& parting);

/// The rank is in a method of mpi4py that consists of several calls, and the others are in a later
/// one of these: it waits with them.
bool is_inside_the_call(const graph::Standing* standing, const Parting& parting);

/// It has called MPI_Finalize, which waits for the others.
bool is_in_finalize(const graph::Standing* standing);

/// Ranks in MPI_Finalize that never reached a call in which others wait for them.
model::RankSet finalized_early(const graph::Examination& examination);

/// A rank waits in one communicator of a split and its partners in a larger group: the rank with
/// more (or fewer) calls in its part than most ranks in theirs is the odd one. The divergence of
/// the larger group is a consequence and is removed.
void settle_splits(const graph::Examination& examination, std::vector<Parting>& all);

}  // namespace ddpdoctor::detectors
