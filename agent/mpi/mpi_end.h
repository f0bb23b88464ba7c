// SPDX-License-Identifier: Apache-2.0
// A process that MPI ends: by MPI_Abort, or in a call that failed and whose error nobody handles.
#pragma once

#include "wire/layout.h"

namespace ddpdoctor::agent {

/// To be asked when the process is about to leave with `status`. Where it does so inside a call of
/// the program's to MPI, the ring tells that call and its place, once: what MPI does afterwards on
/// its way out changes nothing. False where MPI has nothing to do with it.
bool mpi_ends_process(wire::Ring& ring, int status);

}  // namespace ddpdoctor::agent
