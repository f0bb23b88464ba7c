// SPDX-License-Identifier: Apache-2.0
// Exceptions of torch's own code that connects a rank to the store of MASTER_ADDR: the address, the
// name or the network is at fault, not the line that called init_process_group.
#pragma once

#include <string_view>

#include "collector/detectors/evidence/tracebacks.h"

namespace ddpdoctor::detectors {

/// Raised by the constructor of the store.
bool makes_store(const Traceback& traceback);

/// Raised by the constructor of the store, which other messages do not identify.
bool failed_to_reach_store(const Traceback& traceback);

/// The text says that the host's name was not found: "gai error: -2 - Name or service not known".
bool says_name_unknown(std::string_view text);

/// Raised where torch reads RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT: one of them is not set.
bool lacks_environment(std::string_view exception);

/// torch's warning of a name, if its process then gave up before it tried any address: what it
/// raises says nothing of the name.
std::optional<std::string_view> warning_before_giving_up(std::string_view log);

}  // namespace ddpdoctor::detectors
