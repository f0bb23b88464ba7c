// SPDX-License-Identifier: Apache-2.0
// /proc/PID/stack: the functions of the kernel in which a thread sleeps. Tells what a thread in
// state D waits for: a file system, the driver of a GPU or of a network adapter.
#pragma once

#include <span>
#include <string_view>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// "[<0>] nfs4_do_open+0xcd/0x1f0 [nfsv4]".
bool is_kernel_frame(std::string_view line);

/// Adds a fact for each such stack, with the pid that a line above names (`cat /proc/7/stack`) and
/// the state of the process as far as /proc/PID/status was printed, too.
void read_kernel_stacks(std::span<const std::string_view> lines, model::JobModel& job);

}  // namespace ddpdoctor::imports
