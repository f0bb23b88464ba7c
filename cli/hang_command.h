// SPDX-License-Identifier: Apache-2.0
// The user's own command of --on-hang-exec, for example for a message or a ticket.
#pragma once

#include <string>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Runs `command` in a shell with DDPDOCTOR_REPORT_DIR = `report_dir` (absolute) in its environment
/// and waits at most a minute; after that it continues alone. Fails if it cannot be started or
/// fails itself.
base::Result<void> run_hang_command(const std::string& command, const std::string& report_dir);

}  // namespace ddpdoctor::cli
