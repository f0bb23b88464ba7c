// SPDX-License-Identifier: Apache-2.0
// nested-pool: tasks of a pool wait for results of tasks that they submitted to the same pool. When
// all workers wait, no worker is free to run the submitted tasks.
#include <algorithm>

#include <fmt/format.h>

#include "base/path_ends.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/blocked_threads.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/rpc_pool.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::nested_pool {
namespace {

constexpr std::string_view kKind = "nested-pool";

/// The thread is a worker of an executor or of a multiprocessing pool.
bool serves_pool(const model::Thread& thread) {
  return python_frame_in(thread, "concurrent/futures/thread.py", {"_worker"}) != nullptr ||
         python_frame_in(thread, "concurrent/futures/process.py", {"_process_worker"}) != nullptr ||
         python_frame_in(thread, "multiprocessing/pool.py", {"worker"}) != nullptr;
}

/// The task on this thread waits for the result of another task, without a timeout.
bool waits_for_result(const model::Thread& thread) {
  if (own_user_frame(thread) == nullptr || !asleep(thread) ||
      (thread.waits_on && thread.waits_on->limit)) {
    return false;
  }
  const auto called = called_by_user(thread);
  return std::any_of(called.begin(), called.end(), [](const model::Frame& frame) {
    const std::string_view function(frame.function);
    return frame.language == model::Language::kPython &&
           ((frame.file.ends_with("concurrent/futures/_base.py") &&
             (function.ends_with("result") || function.ends_with("wait") ||
              function.ends_with("as_completed"))) ||
            (base::path_ends_with(frame.file, "multiprocessing/pool.py") &&
             (function.ends_with("get") || function.ends_with("wait") ||
              function.ends_with("next"))));
  });
}

/// Determines whether a thread of the same process can end the wait of a thread.
class Deadlocks {
 public:
  explicit Deadlocks(const graph::Examination& examination)
      : blocked_(blocked_threads(examination)), stuck_(graph::stuck_for_ever(blocked_.nodes)) {}

  [[nodiscard]] bool is_stuck(const model::Process& process, const model::Thread& thread) const {
    for (std::size_t i = 0; i < blocked_.threads.size(); ++i) {
      if (blocked_.threads[i].thread == &thread && stuck_[i]) {
        return true;
      }
    }
    return is_alone(process, thread);
  }

 private:
  /// A forked process has a copy of the executor, but not the thread that distributes its tasks.
  static bool is_alone(const model::Process& process, const model::Thread& thread) {
    return !process.rank.has_value() || process.role != model::Role::kRank
               ? std::none_of(process.threads.begin(), process.threads.end(),
                              [&thread](const model::Thread& other) {
                                return &other != &thread &&
                                       model::innermost_python(other) != nullptr;
                              })
               : false;
  }

  BlockedThreads blocked_;
  std::vector<bool> stuck_;
};

/// The pool's workers in this process, if each waits for a result that only another could compute;
/// otherwise empty.
std::vector<const model::Thread*> all_waiting(const Deadlocks& deadlocks,
                                              const model::Process& process) {
  std::vector<const model::Thread*> workers;
  for (const model::Thread& thread : process.threads) {
    if (!serves_pool(thread)) {
      continue;
    }
    if (!waits_for_result(thread) || !deadlocks.is_stuck(process, thread)) {
      return {};
    }
    workers.push_back(&thread);
  }
  return workers;
}

/// The rank of this process neither runs nor waits for other ranks, so the pool may hold it up.
bool holds_up_its_rank(const graph::Examination& examination, const model::Process& process) {
  const auto rank = served_rank(examination.job, process);
  const graph::Standing* standing = rank ? examination.standing(*rank) : nullptr;
  return standing != nullptr && !standing->waits_for_ranks() && !standing->on_cpu;
}

Finding finding_of(const graph::Examination& examination, const model::Process& process,
                   const std::vector<const model::Thread*>& workers, Confidence still) {
  Suspect suspect = suspect_in(examination, process, workers.front());
  suspect.confidence = still == Confidence::kLikely ? Confidence::kCertain : still;
  suspect.note = "a task of the pool waits here for a task of the same pool";
  suspect.evidence =
      fmt::format("{} of process {} {} for results of tasks that no worker is free to run",
                  workers.size() == 1 ? std::string("the only worker thread")
                                      : fmt::format("all {} worker threads", workers.size()),
                  process.pid, workers.size() == 1 ? "waits" : "wait");
  Finding finding = accuse(examination, kKind, {suspect});
  finding.summary = fmt::format(
      "all workers of a pool of {} wait ({}) for tasks that they gave to the same pool{}",
      who({suspect}), place(suspect.place), and_who_waits(finding));
  const graph::Standing* standing = suspect.rank ? examination.standing(*suspect.rank) : nullptr;
  if (standing != nullptr && standing->user.known() &&
      !graph::same_line(standing->user, suspect.place)) {
    finding.locations.insert(
        finding.locations.begin() + std::min<std::ptrdiff_t>(1, std::ssize(finding.locations)),
        location(*standing, fmt::format("rank {} is waiting for the pool here", *suspect.rank)));
  }
  finding.fix =
      "Call the inner function directly, or submit it to a second pool: a task must not wait for a "
      "task of its own pool.";
  return finding;
}

/// Handlers of RPC that wait for a request for which no thread is left.
Finding finding_of(const graph::Examination& examination, const FullRpcPool& pool,
                   Confidence still) {
  const std::size_t count = pool.handlers.size();
  Suspect suspect = suspect_in(examination, *pool.process, pool.handlers.front());
  const std::string threads = fmt::format(
      "{} of {}", count == 1 ? "the only RPC thread" : fmt::format("all {} RPC threads", count),
      who({suspect}));
  suspect.confidence = still == Confidence::kPossible ? still : Confidence::kLikely;
  suspect.note = "a handler waits here for another request";
  suspect.evidence = fmt::format("{} {} in a handler, and none is free; {} wait for an answer",
                                 threads, count == 1 ? "is" : "are", said(pool.callers));
  Finding finding = accuse(examination, kKind, {suspect});
  finding.waiting = pool.callers.united(finding.waiting).minus(finding.culprits);
  finding.summary = fmt::format(
      "{} {} in a handler ({}) for a request that no thread is left to run; {} wait for an answer",
      threads, count == 1 ? "waits" : "wait", place(suspect.place), said(pool.callers));
  finding.fix = fmt::format(
      "Pass num_worker_threads={} or more in TensorPipeRpcBackendOptions, one for each request "
      "that "
      "may wait; or return a Future at once (rpc.functions.async_execution) and set its result "
      "when "
      "the last request has come.",
      pool.callers.size() + 1);
  return finding;
}

Findings detect(const graph::Examination& examination) {
  const auto still = stuck(examination);
  Findings findings;
  for (const FullRpcPool& pool : still ? full_rpc_pools(examination) : std::vector<FullRpcPool>{}) {
    findings.push_back(finding_of(examination, pool, *still));
  }
  const auto all = processes(examination.job);
  const bool any = std::any_of(all.begin(), all.end(), [](const model::Process* process) {
    return std::any_of(process->threads.begin(), process->threads.end(), serves_pool);
  });
  if (!still || !any) {
    return findings;
  }
  const Deadlocks deadlocks(examination);
  for (const model::Process* process : all) {
    const auto workers = alive(*process) && holds_up_its_rank(examination, *process)
                             ? all_waiting(deadlocks, *process)
                             : std::vector<const model::Thread*>{};
    if (!workers.empty()) {
      findings.push_back(finding_of(examination, *process, workers, *still));
    }
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Tasks of a pool wait for tasks of the same pool",
    .explanation =
        R"(What you see: one rank waits for the result of a ThreadPoolExecutor or pool; the others wait for that rank. With fewer tasks, or
more workers, it works.

Why: a task submits another task to the pool it runs in, and waits for it. When every worker does so, no worker is free to run the
inner tasks. The same happens to torch.distributed.rpc, whose agent runs requests in a few threads (num_worker_threads): handlers that
wait for a further request, for example until all trainers have sent their gradients, can occupy all of them.

How ddpdoctor knows: every worker thread of the process is in result() or get() inside a task, none has a timeout, and no other
thread of the process can act.

Fix:
    - return pool.submit(leaf, x).result()
    + return leaf(x))",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::nested_pool
