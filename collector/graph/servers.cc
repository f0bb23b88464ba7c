// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/servers.h"

#include <algorithm>
#include <string>

#include "collector/graph/working.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {

// NOLINTNEXTLINE(misc-no-recursion): as deep as kLongestChain
bool its_server_works(const model::JobModel& job, const model::Process& process,
                      const model::Thread& thread, int depth) {
  constexpr int kLongestChain = 4;
  const model::Observation* now = model::latest(job);
  if (now == nullptr || !thread.waits_on || depth > kLongestChain) {
    return false;
  }
  const pid_t holder =
      thread.waits_on->kind == "lock-file" ? holder_of_lock_file(job, process) : pid_t{0};
  const bool inside = std::any_of(now->processes.begin(), now->processes.end(),
                                  [holder](const auto& one) { return one.pid == holder; });
  if (holder != 0 && !inside) {
    return true;  // another program holds the lock, and its activity is not observed
  }
  return std::any_of(now->processes.begin(), now->processes.end(), [&](const model::Process& one) {
    const model::Thread* main = model::main_thread(one);
    if (one.pid == process.pid || main == nullptr ||
        (one.pid != holder && thread.waits_on->target != "pid:" + std::to_string(one.pid))) {
      return false;
    }
    // A rank serves its worker from another thread while its main thread waits for the worker.
    if (one.role == model::Role::kRank) {
      return process.role != model::Role::kRank && another_thread_works(job, one, *main);
    }
    // A server's main thread only accepts connections; other threads answer the requests.
    return main->state == 'R' || waits_for_a_moment(job, *main) ||
           another_thread_works(job, one, *main) || its_server_works(job, one, *main, depth + 1);
  });
}

/// A server of the standard library: it polls twice a second and never ends.
bool serves(const model::Thread& thread) {
  return model::find_python_frame(thread, "serve_forever") != nullptr;
}

bool an_outsider_goes_on(const model::JobModel& job) {
  const model::Observation* now = model::latest(job);
  const auto is_below_rank = [&job](const model::Process& process) {
    constexpr int kDeepest = 16;
    const model::Process* at = &process;
    for (int i = 0; at != nullptr && i < kDeepest; ++i) {
      if (at->rank || at->role == model::Role::kRank) {
        return true;
      }
      at = model::process(job, at->ppid);
    }
    return false;
  };
  // A process that started long after the hang, such as the next `sleep` of a loop, is not what the
  // job waits for.
  const auto began_later = [&](const model::Process& process) {
    constexpr double kLong = 15;  // seconds
    return process.start_time && job.seconds_without_progress &&
           *process.start_time > now->time - *job.seconds_without_progress + kLong;
  };
  return now != nullptr &&
         std::any_of(now->processes.begin(), now->processes.end(), [&](const auto& process) {
           const model::Thread* main = model::main_thread(process);
           return main != nullptr && !began_later(process) && !is_below_rank(process) &&
                  (waits_for_a_moment(job, *main) ||
                   (serves(*main) && another_thread_works(job, process, *main)));
         });
}

}  // namespace ddpdoctor::graph
