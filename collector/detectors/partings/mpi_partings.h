// SPDX-License-Identifier: Apache-2.0
// What is special when ranks of an MPI job part: ranks go on from a call with a root as soon as
// their own part of it is done, mpi4py makes several calls of one, and the communicators of one
// split tell by their number of calls who made one too many.
#pragma once

#include <vector>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// By stacks alone: some ranks wait in a call with a root, which others may have left legally. Says
/// who left it out (or made it alone) where the source or the places tell; else nobody is the odd
/// one and `undecided` is set.
void settle_rooted(const graph::Examination& examination, Parting& parting);

/// The rank is in a method of mpi4py's that is made of several calls, of which the others are in a
/// later one: it waits with them.
bool is_inside_the_call(const graph::Standing* standing, const Parting& parting);

/// It has called MPI_Finalize, which waits for the others.
bool is_in_finalize(const graph::Standing* standing);

/// Ranks in MPI_Finalize that never came to a call in which others wait for them.
model::RankSet finalized_early(const graph::Examination& examination);

/// A rank waits in one communicator of a split and its partners in a larger group: who has made
/// more (or fewer) calls in its half than most ranks in theirs is the odd one, and the parting of
/// the larger group is a consequence, which is taken out.
void settle_splits(const graph::Examination& examination, std::vector<Parting>& all);

}  // namespace ddpdoctor::detectors
