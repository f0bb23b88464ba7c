// SPDX-License-Identifier: Apache-2.0
// fork copies the address space: the main thread of the child has the pthread_t of the thread that
// forked. The kernel places the stacks and the libraries of every program at random, so two
// programs do not share that address, unless this is switched off: then it is below kFixed.
#include "collector/imports/stack_dumps/dump_forks.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

// Libraries without randomization: 0x7ffff7……. (gdb starts its own programs so.)
constexpr std::uint64_t kFixed = 0x7ffff7;
constexpr unsigned kFixedShift = 24;
constexpr unsigned kLowShift = 32;  // an address below is not of a program of 64 bits

/// Only one thread is copied: the process with a single thread is the child.
bool is_child_of(const StackDump& child, const StackDump& parent) {
  return child.main_pointer && child.main_pointer == parent.main_pointer &&
         *child.main_pointer >> kFixedShift != kFixed && *child.main_pointer >> kLowShift != 0 &&
         child.process.pid != parent.process.pid && child.process.pid != 0 &&
         parent.process.pid != 0 && child.process.threads.size() == 1 &&
         parent.process.threads.size() > 1;
}

}  // namespace

void relate_forks(std::vector<StackDump>& dumps, model::JobModel& job) {
  for (StackDump& child : dumps) {
    const auto of_child = [&child](const StackDump& other) { return is_child_of(child, other); };
    const auto parent = std::find_if(dumps.begin(), dumps.end(), of_child);
    if (child.process.ppid < 0 && parent != dumps.end() &&
        std::none_of(std::next(parent), dumps.end(), of_child)) {
      child.process.ppid = parent->process.pid;
      job.facts.push_back({.rank = {},
                           .pid = child.process.pid,
                           .kind = "fork",
                           .fields = {{"parent_pid", std::int64_t{parent->process.pid}}}});
    }
  }
  std::erase_if(dumps, [](const StackDump& dump) {
    return dump.main_pointer &&
           std::all_of(dump.process.threads.begin(), dump.process.threads.end(),
                       [](const model::Thread& thread) { return thread.frames.empty(); });
  });
}

namespace {

bool awaits_forked_child(const model::Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(), [](const auto& thread) {
    return model::has_python_frame(thread, "poll", "multiprocessing/popen_fork.py") ||
           model::has_python_frame(thread, "wait", "multiprocessing/popen_fork.py");
  });
}

bool may_be_forked(const model::Process& process) {
  return model::was_dumped(process) && process.pid != 0 && process.ppid < 0 &&
         process.threads.size() == 1 && !process.threads.front().frames.empty() &&
         process.threads.front().frames.front().language == model::Language::kNative &&
         !awaits_forked_child(process);
}

}  // namespace

void tell_awaited_child(model::JobModel& job) {
  if (job.observations.empty()) {
    return;
  }
  const model::Process* parent = nullptr;
  const model::Process* child = nullptr;
  std::size_t children = 0;
  for (const model::Process& process : job.observations.back().processes) {
    parent = awaits_forked_child(process) ? &process : parent;
    child = may_be_forked(process) ? &process : child;
    children += may_be_forked(process) ? 1 : 0;
  }
  if (parent == nullptr || children != 1 || child->host != parent->host ||
      child->pid <= parent->pid) {
    return;
  }
  model::Fact fork{.rank = {}, .pid = child->pid, .kind = "fork", .fields = {}};
  if (parent->pid != 0) {
    fork.fields["parent_pid"] = std::int64_t{parent->pid};
  }
  job.facts.push_back(std::move(fork));
}

}  // namespace ddpdoctor::imports
