// SPDX-License-Identifier: Apache-2.0
// /proc/PID/stack: the functions of the kernel in which a thread sleeps. Tells what a thread in
// state D waits for: a file system, the driver of a GPU or of a network adapter.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The functions of one sleeping thread, innermost first.
struct KernelStack {
  std::vector<std::string> functions;
  std::vector<std::string> modules;  // of each function; empty: built into the kernel

  /// Takes "nfs4_do_open+0xcd/0x1f0 [nfsv4]"; false for other texts, and "? " of old frames.
  bool take(std::string_view symbol);

  /// As a fact of this process.
  [[nodiscard]] model::Fact fact(pid_t pid) &&;
};

/// "[<0>] nfs4_do_open+0xcd/0x1f0 [nfsv4]".
bool is_kernel_frame(std::string_view line);

/// Adds a fact for each such stack, with the pid that a line above names (`cat /proc/7/stack`) and
/// the state of the process as far as /proc/PID/status was printed, too.
void read_kernel_stacks(std::span<const std::string_view> lines, model::JobModel& job);

}  // namespace ddpdoctor::imports
