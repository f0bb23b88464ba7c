// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/working.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/path_ends.h"
#include "collector/model/python_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

constexpr double kBusyShare = 0.2;  // share of one core; a sleep loop uses a hundredth of it

bool ran_since(const model::Process& before, const model::Thread& thread) {
  const auto earlier = std::find_if(before.threads.begin(), before.threads.end(),
                                    [&](const model::Thread& t) { return t.tid == thread.tid; });
  return earlier != before.threads.end() && earlier->run_count && thread.run_count &&
         *earlier->run_count != *thread.run_count;
}

// Bytes moved through files and pipes between snapshots: saving to slow storage uses no CPU.
bool moved_bytes(const model::Process& before, const model::Process& now) {
  constexpr std::int64_t kWorthIt = 16384;  // bytes; a heartbeat in a log writes less
  return before.io_bytes && now.io_bytes && *now.io_bytes - *before.io_bytes >= kWorthIt;
}

}  // namespace

pid_t holder_of_lock_file(const model::JobModel& job, const model::Process& process) {
  const std::string pid = std::to_string(process.pid);
  for (const model::Fact* fact : model::facts(job, "lock-file")) {
    const auto waiting = fact->list("waiting_pids");
    if (fact->flag("held").value_or(false) &&
        std::find(waiting.begin(), waiting.end(), pid) != waiting.end()) {
      return static_cast<pid_t>(fact->number("holder_pid").value_or(0));
    }
  }
  return 0;
}

/// The thread runs the code of a module that it imports.
bool imports(const model::Thread& thread) {
  return model::find_python_frame(thread, "_load_unlocked") != nullptr;
}

bool an_awaited_thread_works(const model::JobModel& job, const model::Process& process,
                             const model::Thread& thread) {
  if (!thread.waits_on) {
    return false;
  }
  // An import lock does not always name its owner: accepts any thread that imports.
  const bool any_import = thread.waits_on->kind == "import-lock" && thread.waits_on->target.empty();
  return std::any_of(process.threads.begin(), process.threads.end(), [&](const auto& one) {
    const bool awaited = any_import
                             ? one.tid != thread.tid && imports(one)
                             : thread.waits_on->target == "thread:" + std::to_string(one.tid);
    return awaited &&
           (waits_for_a_moment(job, one) || (any_import && ran_between_looks(job, process, one)));
  });
}

const model::Process* same_process(const model::Observation& there, const model::Process& process) {
  const auto found = std::find_if(there.processes.begin(), there.processes.end(),
                                  [&process](const model::Process& other) {
                                    return other.pid == process.pid && other.host == process.host &&
                                           other.rank == process.rank && other.role == process.role;
                                  });
  return found == there.processes.end() ? nullptr : &*found;
}

/// Its children keep failing and being replaced: new children are not progress.
bool children_keep_failing(const model::JobModel& job, const model::Process& process) {
  constexpr std::ptrdiff_t kMany = 5;
  const auto facts = model::facts(job, "exit");
  return std::count_if(facts.begin(), facts.end(), [&process](const model::Fact* fact) {
           return fact->number("parent_pid") == process.pid &&
                  fact->number("status").value_or(0) != 0;
         }) >= kMany;
}

/// Every Python thread of it waits without a timeout for a condition or queue of the process itself
/// or for another of these threads: nothing a child does can wake it.
bool only_waits_for_itself(const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  return main != nullptr && innermost_python(*main) != nullptr &&
         std::all_of(process.threads.begin(), process.threads.end(), [&](const auto& thread) {
           const model::Frame* python = innermost_python(thread);
           const bool own = (python == nullptr && !thread.frames.empty()) ||
                            (python != nullptr && is_of_own_threads(model::python_wait(*python)));
           const bool limited = thread.waits_on && thread.waits_on->limit;
           return own && (python == nullptr || (thread.state != 'R' && !limited));
         });
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as kDeepest
bool a_child_works(const model::JobModel& job, const model::Process& process, int depth) {
  constexpr int kDeepest = 8;
  const model::Observation* then = model::previous(job);
  const model::Observation* now = model::latest(job);
  if (now == nullptr || depth > kDeepest || (then != nullptr && now->time <= then->time) ||
      only_waits_for_itself(process)) {
    return false;
  }
  const bool births_count = !children_keep_failing(job, process);
  return std::any_of(now->processes.begin(), now->processes.end(), [&](const model::Process& one) {
    if (one.ppid != process.pid || one.pid == process.pid || one.role == model::Role::kRank ||
        one.exit || (!births_count && then != nullptr && same_process(*then, one) == nullptr)) {
      return false;
    }
    if (then == nullptr) {
      const model::Thread* main = model::main_thread(one);
      return (main != nullptr && main->state == 'R') || a_child_works(job, one, depth + 1);
    }
    const model::Process* before = same_process(*then, one);
    const model::Thread* main = model::main_thread(one);
    const model::Thread* main_before = before == nullptr ? nullptr : model::main_thread(*before);
    const bool wants_cpu = main != nullptr && main_before != nullptr && main->state == 'R' &&
                           main_before->state == 'R';  // gets little CPU time on a loaded machine
    const bool busy =
        before == nullptr || wants_cpu || (main != nullptr && waits_for_a_moment(job, *main)) ||
        moved_bytes(*before, one) ||
        (one.cpu_seconds && before->cpu_seconds &&
         *one.cpu_seconds - *before->cpu_seconds >= kBusyShare * (now->time - then->time));
    return busy || a_child_works(job, one, depth + 1);
  });
}

bool ran_between_looks(const model::JobModel& job, const model::Process& process,
                       const model::Thread& thread) {
  const model::Observation* then = model::previous(job);
  const model::Process* before = then == nullptr ? nullptr : same_process(*then, process);
  return before != nullptr && ran_since(*before, thread);
}

bool an_event_came(const model::JobModel& job, const model::Process& process,
                   const model::Thread& thread) {
  const bool by_timer = thread.waits_on && thread.waits_on->limit;
  return !by_timer && ran_between_looks(job, process, thread);
}

bool is_served_from_outside(const model::JobModel& job, const model::Process& process,
                            const model::Thread& thread) {
  constexpr std::array<std::string_view, 4> kChannels = {"socket", "pipe", "fifo", "file"};
  if (!thread.waits_on ||
      std::find(kChannels.begin(), kChannels.end(), thread.waits_on->kind) == kChannels.end()) {
    return false;
  }
  const model::Observation* now = model::latest(job);
  const bool inside =
      now != nullptr &&
      std::any_of(now->processes.begin(), now->processes.end(), [&](const model::Process& other) {
        return other.pid != process.pid &&
               thread.waits_on->target == "pid:" + std::to_string(other.pid);
      });
  return !inside && ran_between_looks(job, process, thread);
}

bool worked_since(const model::JobModel& job, const model::Process* before,
                  const model::Process& process, const model::Thread& thread) {
  const model::Observation* then = model::previous(job);
  const model::Observation* now = model::latest(job);
  if (before == nullptr || then == nullptr || now == nullptr || now->time <= then->time ||
      !before->cpu_seconds || !process.cpu_seconds) {
    return false;
  }
  return ran_since(*before, thread) &&
         (moved_bytes(*before, process) ||
          *process.cpu_seconds - *before->cpu_seconds >= kBusyShare * (now->time - then->time));
}

bool ends_its_groups(const model::Process& process, const model::Thread& thread) {
  return model::was_dumped(process) && !thread.frames.empty() &&
         thread.frames.front().function == "destroy_process_group" &&
         base::path_ends_with(thread.frames.front().file, "torch/distributed/distributed_c10d.py");
}

}  // namespace ddpdoctor::graph
