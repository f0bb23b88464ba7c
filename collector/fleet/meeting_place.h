// SPDX-License-Identifier: Apache-2.0
// Where the ranks of a job meet, as each of them was told: the same on every node.
#pragma once

#include <string>

#include <sys/types.h>

namespace ddpdoctor::fleet {

/// "MASTER_ADDR:MASTER_PORT" of a rank's environment; empty when it has none.
std::string meeting_place(pid_t rank);

}  // namespace ddpdoctor::fleet
