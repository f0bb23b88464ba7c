// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/capture.h"

#include <memory>

#include "collector/stacks/process_capture.h"

namespace ddpdoctor::stacks {

std::vector<ProcessStacks> capture(std::span<const pid_t> pids, const CaptureOptions& options) {
  ElfCache files;
  std::vector<std::unique_ptr<ProcessCapture>> processes;
  processes.reserve(pids.size());
  // Captures all processes before it resolves any names, so that the snapshots are as close in time
  // as possible.
  for (const pid_t pid : pids) {
    processes.push_back(std::make_unique<ProcessCapture>(pid, options));
    processes.back()->look(files);
  }
  FunctionNames names;
  for (const auto& process : processes) {
    process->want_names(names);
  }
  names.resolve();
  FamilyPages family;
  std::vector<ProcessStacks> stacks;
  stacks.reserve(pids.size());
  for (auto& process : processes) {
    stacks.push_back(process->finish(names, family));
    process.reset();
  }
  return stacks;
}

std::vector<std::pair<pid_t, std::uint64_t>> run_counts(pid_t pid) {
  std::vector<std::pair<pid_t, std::uint64_t>> counts;
  const auto tasks = ProcTasks::open(pid);
  if (!tasks) {
    return counts;
  }
  for (const pid_t tid : tasks->tids()) {
    if (const auto count = tasks->run_count(tid)) {
      counts.emplace_back(tid, *count);
    }
  }
  return counts;
}

}  // namespace ddpdoctor::stacks
