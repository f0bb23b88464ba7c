// SPDX-License-Identifier: Apache-2.0
// The order of the queries: Python frames are most specific, then locks with an owner, then the
// system call.
#include "collector/sources/waits/targets.h"

#include "collector/sources/waits/context.h"

namespace ddpdoctor::sources {

namespace {

std::optional<WaitTarget> awaited(WaitContext& context, const WaitingThread& waiting) {
  if (waiting.thread.state == 'R' || waiting.thread.state == 'T' || waiting.thread.state == 'Z') {
    return std::nullopt;  // it runs, was stopped, or has exited: it does not wait
  }
  if (auto found = lock_wait(context, waiting); found && found->kind == "gil") {
    return found;  // returning from the call that the Python frames show: that wait is over
  }
  if (auto found = python_wait(context, waiting)) {
    return found;
  }
  if (auto found = lock_wait(context, waiting)) {
    return found;
  }
  if (auto found = timer_wait(context, waiting)) {
    return found;
  }
  return call_wait(context, waiting);
}

std::optional<WaitTarget> target_of(WaitContext& context, const WaitingThread& waiting) {
  auto found = awaited(context, waiting);
  const bool ends_by_itself = waiting.thread.syscall && waiting.thread.state != 'R';
  const auto limit = ends_by_itself ? time_limit(context, waiting) : std::nullopt;
  const bool tries_again = found && found->kind == "lock-file";  // retries after each short sleep
  if (found && !found->limit && !tries_again) {
    found->limit = limit;
  } else if (!found && limit) {  // the next timer of an event loop, or a condition with a timeout
    const bool main = waiting.thread.tid == waiting.process.row.pid;
    found =
        WaitTarget{.kind = main ? "timer" : "timeout", .target = {}, .detail = {}, .limit = limit};
  }
  return found;
}

}  // namespace

std::map<std::pair<pid_t, pid_t>, WaitTarget> wait_targets(
    const JobTree& job, const std::vector<stacks::ProcessStacks>& stacks, stacks::MapsTable* maps) {
  WaitContext context(job, stacks, maps);
  return wait_targets(context, stacks);
}

std::map<std::pair<pid_t, pid_t>, WaitTarget> wait_targets(
    WaitContext& context, const std::vector<stacks::ProcessStacks>& stacks) {
  std::map<std::pair<pid_t, pid_t>, WaitTarget> targets;
  for (const stacks::ProcessStacks& process : stacks) {
    const JobProcess* known = context.job().find(process.pid);
    if (known == nullptr) {
      continue;
    }
    for (const stacks::ThreadStack& thread : process.threads) {
      if (auto target = target_of(
              context, WaitingThread{.process = *known, .stacks = process, .thread = thread})) {
        targets.emplace(std::pair(process.pid, thread.tid), std::move(*target));
      }
    }
  }
  return targets;
}

}  // namespace ddpdoctor::sources
