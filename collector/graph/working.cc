// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/working.h"

#include <algorithm>

#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

constexpr double kBusyShare = 0.2;  // of one core; a sleep loop uses a hundredth of that

// Bytes that went through files and pipes between the looks: saving to slow storage uses no CPU.
bool moved_bytes(const model::Process& before, const model::Process& now) {
  constexpr std::int64_t kWorthIt = 16384;  // a heartbeat in a log is less
  return before.io_bytes && now.io_bytes && *now.io_bytes - *before.io_bytes >= kWorthIt;
}

}  // namespace

const model::Process* same_process(const model::Observation& there, const model::Process& process) {
  const auto found = std::find_if(there.processes.begin(), there.processes.end(),
                                  [&process](const model::Process& other) {
                                    return other.pid == process.pid && other.host == process.host &&
                                           other.rank == process.rank && other.role == process.role;
                                  });
  return found == there.processes.end() ? nullptr : &*found;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as kDeepest
bool a_child_works(const model::JobModel& job, const model::Process& process, int depth) {
  constexpr int kDeepest = 8;
  const model::Observation* then = model::previous(job);
  const model::Observation* now = model::latest(job);
  if (now == nullptr || depth > kDeepest || (then != nullptr && now->time <= then->time)) {
    return false;
  }
  return std::any_of(now->processes.begin(), now->processes.end(), [&](const model::Process& one) {
    if (one.ppid != process.pid || one.pid == process.pid || one.role == model::Role::kRank ||
        one.exit) {
      return false;
    }
    if (then == nullptr) {
      const model::Thread* main = model::main_thread(one);
      return (main != nullptr && main->state == 'R') || a_child_works(job, one, depth + 1);
    }
    const model::Process* before = same_process(*then, one);
    const bool busy =
        before == nullptr || moved_bytes(*before, one) ||
        (one.cpu_seconds && before->cpu_seconds &&
         *one.cpu_seconds - *before->cpu_seconds >= kBusyShare * (now->time - then->time));
    return busy || a_child_works(job, one, depth + 1);
  });
}

bool worked_since(const model::JobModel& job, const model::Process* before,
                  const model::Process& process, const model::Thread& thread) {
  const model::Observation* then = model::previous(job);
  const model::Observation* now = model::latest(job);
  if (before == nullptr || then == nullptr || now == nullptr || now->time <= then->time ||
      !before->cpu_seconds || !process.cpu_seconds) {
    return false;
  }
  const auto earlier = std::find_if(before->threads.begin(), before->threads.end(),
                                    [&](const model::Thread& t) { return t.tid == thread.tid; });
  const bool ran = earlier != before->threads.end() && earlier->run_count && thread.run_count &&
                   *earlier->run_count != *thread.run_count;
  return ran && (moved_bytes(*before, process) || *process.cpu_seconds - *before->cpu_seconds >=
                                                      kBusyShare * (now->time - then->time));
}

}  // namespace ddpdoctor::graph
