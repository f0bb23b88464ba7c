// SPDX-License-Identifier: Apache-2.0
// MPI 4's functions with large counts (MPI_Allreduce_c …). They are not exported: mpi4py asks with
// weak symbols whether MPI has them, and calls them where it has. Instead, once MPI is known to
// have them, the slots through which loaded objects call them are pointed to us.
#pragma once

#include "agent/mpi/mpi_library.h"

namespace ddpdoctor::agent {

/// Points the slots of all loaded objects to `doors` (by id) for the functions that this MPI has.
/// Objects that are loaded later keep calling MPI itself.
void redirect_large_mpi(void* const* doors);

}  // namespace ddpdoctor::agent
