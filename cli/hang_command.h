// SPDX-License-Identifier: Apache-2.0
// What --on-hang-exec starts: the owner's own command, for a message or a ticket.
#pragma once

#include <string>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Runs `command` in a shell with DDPDOCTOR_REPORT_DIR = `report_dir` (absolute) in its environment
/// and waits for it, at most a minute: then it goes on alone. An error when it cannot be started or
/// fails.
base::Result<void> run_hang_command(const std::string& command, const std::string& report_dir);

}  // namespace ddpdoctor::cli
