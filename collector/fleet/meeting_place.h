// SPDX-License-Identifier: Apache-2.0
// The rendezvous address that each rank of a job got: the same on every node.
#pragma once

#include <string>

#include <sys/types.h>

namespace ddpdoctor::fleet {

/// "MASTER_ADDR:MASTER_PORT" from the environment of a rank; empty when it has none.
std::string meeting_place(pid_t rank);

}  // namespace ddpdoctor::fleet
