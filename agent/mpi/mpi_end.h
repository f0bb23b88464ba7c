// SPDX-License-Identifier: Apache-2.0
// A process that MPI ends: in MPI_Abort, or in a failed call whose error is not handled.
#pragma once

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// Call when the process is about to exit with `status`. If it exits inside one of the program's
/// MPI calls, records that call and its call site in the ring, once: what MPI does later during the
/// exit changes nothing. Returns false if MPI is not involved.
bool mpi_ends_process(wire::Ring& ring, int status);

}  // namespace ddpdoctor::agent
