// SPDX-License-Identifier: Apache-2.0
// Processes that sleep in the kernel inside a file system or a driver, by their kernel stacks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// What such a process waits for.
enum class KernelPart { kFiles, kGpu, kFabric };

struct KernelWait {
  pid_t pid = 0;                            // 0 = unknown
  const model::Process* process = nullptr;  // if it was observed
  KernelPart part = KernelPart::kFiles;
  std::string_view what;         // "the network file system NFS"
  std::string function;          // the innermost one of that part
  std::string caller;            // the outermost one of that part: "nfs4_file_open"
  std::string module;            // of the caller: "nfsv4"; empty if it is built in
  std::string line;              // of the kernel log; empty if a stack was printed
  bool uninterruptible = false;  // state D: no signal ends the wait
  bool stays = false;            // two stacks of it are equal
  bool for_lock = false;         // for a lock of the kernel, such as that of a file
};

/// One per thread.
std::vector<KernelWait> kernel_waits(const model::JobModel& job);

/// A finding for all processes that wait in one part; none if no process does.
Findings findings_of_kernel_waits(const graph::Examination& examination, std::string_view kind,
                                  KernelPart part);

}  // namespace ddpdoctor::detectors
