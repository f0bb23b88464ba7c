// SPDX-License-Identifier: Apache-2.0
// pool-worker-lost: a worker of a multiprocessing.Pool was killed in the middle of a task. The pool
// starts another worker, but the task is lost, and map, get or join wait forever for its result. If
// it was killed while it read a task, the lock of the queue stays locked for all other workers.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/pool_lock.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::pool_worker_lost {
namespace {

constexpr std::string_view kKind = "pool-worker-lost";

/// Seconds; a pool starts its workers together, so a worker that is this much younger replaced a
/// dead one.
constexpr double kReplacedAfterSeconds = 0.2;

bool waits_for_pool(const model::Thread& thread) {
  return python_frame_in(thread, "multiprocessing/pool.py",
                         {"get", "wait", "map", "starmap", "next", "join", "apply"}) != nullptr;
}

/// It owns a pool, and waits for what a worker sends in another way: a queue or a pipe.
bool waits_beside_pool(const model::Process& owner, const model::Thread& main) {
  return std::any_of(owner.threads.begin(), owner.threads.end(),
                     [](const model::Thread& thread) {
                       return python_frame_in(thread, "multiprocessing/pool.py",
                                              {"_handle_workers"}) != nullptr;
                     }) &&
         python_frame_in(main, "multiprocessing/connection.py", {"_recv", "wait"}) != nullptr;
}

bool is_pool_worker(const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  return main != nullptr &&
         python_frame_in(*main, "multiprocessing/pool.py", {"worker"}) != nullptr;
}

/// It waits for a task: no user code runs inside the pool's loop.
bool is_idle(const model::Process& worker) {
  const model::Thread& main = *model::main_thread(worker);
  return python_frame_in(main, "multiprocessing/queues.py", {"get"}) != nullptr &&
         own_user_frame(main) == nullptr;
}

/// The thread that distributes tasks is in the user's code: an iterable that yields slowly leaves
/// the workers idle.
bool makes_tasks(const model::Process& owner) {
  return std::any_of(owner.threads.begin(), owner.threads.end(), [](const model::Thread& thread) {
    return python_frame_in(thread, "multiprocessing/pool.py", {"_handle_tasks"}) != nullptr &&
           own_user_frame(thread) != nullptr;
  });
}

/// A pool itself ends its workers with SIGTERM.
bool was_lost(const std::optional<model::Exit>& exit) {
  constexpr int kTerminated = 15;
  return exit && (exit->signal ? *exit->signal != kTerminated : exit->status.value_or(0) > 0);
}

/// The process that forks workers for its parent (start method "forkserver").
bool is_fork_server(const model::Process& process) {
  constexpr std::string_view kFile = "multiprocessing/forkserver.py";
  const model::Thread* main = model::main_thread(process);
  return main != nullptr && python_frame_in(*main, kFile, {"main"}) != nullptr &&
         python_frame_in(*main, kFile, {"_serve_one"}) == nullptr;
}

/// Children of the owner and of its fork server.
std::vector<const model::Process*> children_made_for(const model::JobModel& job,
                                                     const model::Process& owner) {
  std::vector<const model::Process*> all = children_of(job, owner);
  const std::vector<const model::Process*> own = all;
  for (const model::Process* child : own) {
    if (is_fork_server(*child)) {
      const auto forked = children_of(job, *child);
      all.insert(all.end(), forked.begin(), forked.end());
    }
  }
  return all;
}

/// The evidence for a lost worker; empty if there is none.
std::string loss(const model::JobModel& job, const model::Process& owner,
                 const std::vector<const model::Process*>& children,
                 const std::vector<const model::Process*>& workers) {
  std::set<pid_t> parents{owner.pid};
  for (const model::Process* child : children) {
    if (!alive(*child) &&
        was_lost(exit_of(job, *child).value_or(model::Exit{.status = 1, .signal = {}}))) {
      return fmt::format("child process {} {}", child->pid, how_it_ended(exit_of(job, *child)));
    }
    if (is_fork_server(*child)) {
      parents.insert(child->pid);
    }
  }
  for (const model::Fact* fact : model::facts(job, "exit")) {
    const model::Exit exit = exit_told_by(*fact);
    const auto parent = pid_field(*fact, "parent_pid");
    if (parent && parents.contains(*parent) && was_lost(exit)) {
      return fmt::format("child process {} {}{}", fact->pid.value_or(0), exit.signal ? "was " : "",
                         how_it_ended(exit));
    }
  }
  const auto replaces =
      std::find_if(workers.begin(), workers.end(), [](const model::Process* worker) {
        return python_frame_in(*model::main_thread(*worker), "multiprocessing/pool.py",
                               {"_maintain_pool"}) != nullptr;
      });
  if (replaces != workers.end()) {
    return fmt::format("worker {} was forked by the pool later: it replaces one that exited",
                       (*replaces)->pid);
  }
  const auto [oldest, youngest] =
      std::minmax_element(workers.begin(), workers.end(), [](const auto* a, const auto* b) {
        return a->start_time.value_or(0) < b->start_time.value_or(0);
      });
  if (oldest != workers.end() && (*oldest)->start_time && (*youngest)->start_time &&
      *(*youngest)->start_time - *(*oldest)->start_time > kReplacedAfterSeconds) {
    return fmt::format(
        "worker {} was started {:.1f} s after worker {}: it replaces one that exited",
        (*youngest)->pid, *(*youngest)->start_time - *(*oldest)->start_time, (*oldest)->pid);
  }
  return {};
}

/// It replaces a lost worker: it still imports the program and has taken no task so far.
bool is_starting(const model::Process& child) {
  const model::Thread* main = model::main_thread(child);
  return alive(child) && main != nullptr && !is_pool_worker(child) &&
         python_frame_in(*main, "multiprocessing/spawn.py") != nullptr;
}

std::optional<Suspect> waits_for_lost_task(const graph::Examination& examination,
                                           const model::Process& owner) {
  const model::Thread* main = model::main_thread(owner);
  const auto still = stuck(examination);
  const bool in_pool = main != nullptr && waits_for_pool(*main);
  if (!alive(owner) || main == nullptr || !still ||
      (!in_pool && !waits_beside_pool(owner, *main))) {
    return std::nullopt;
  }
  const std::vector<const model::Process*> children = children_made_for(examination.job, owner);
  const bool works = graph::a_child_works(examination.job, owner);
  const bool starts = std::any_of(children.begin(), children.end(),
                                  [](const model::Process* child) { return is_starting(*child); });
  std::vector<const model::Process*> workers = children;
  std::erase_if(workers, [](const model::Process* child) {
    return !alive(*child) || !is_pool_worker(*child);
  });
  const bool all_idle = std::all_of(workers.begin(), workers.end(),
                                    [](const model::Process* worker) { return is_idle(*worker); });
  if (works && (!starts || workers.empty())) {
    return std::nullopt;  // a worker computes, or all of them are starting
  }
  const std::string lost = loss(examination.job, owner, children, workers);
  if (!all_idle || makes_tasks(owner) || ((workers.empty() || !in_pool) && lost.empty())) {
    return std::nullopt;  // a worker is busy: its result may still come
  }
  Suspect suspect = suspect_in(examination, owner, main);
  // No worker works and nothing makes progress: the result cannot arrive, whether or not the loss
  // was observed.
  suspect.confidence =
      !lost.empty() && *still == Confidence::kLikely ? Confidence::kCertain : *still;
  if (starts || !in_pool) {  // what comes by a queue may have another sender
    suspect.confidence = Confidence::kPossible;
  }
  suspect.note = who({suspect}) + " is waiting here for a result that no worker computes";
  suspect.evidence =
      fmt::format("process {} waits for a result of its pool, and {} idle{}{}", owner.pid,
                  workers.size() == 1 ? std::string("its only worker is")
                                      : fmt::format("all {} workers are", workers.size()),
                  lost.empty() ? "" : "; ", lost);
  return suspect;
}

Findings detect(const graph::Examination& examination) {
  if (auto locked = lock_of_lost_worker(examination)) {
    return {*std::move(locked)};
  }
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    if (auto suspect = waits_for_lost_task(examination, *process)) {
      suspects.push_back(std::move(*suspect));
    }
  }
  if (suspects.empty()) {  // executors of concurrent.futures and joblib raise
    return findings_from_text(examination, kKind);
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary = fmt::format(
        "{} is waiting ({}) for a task of its multiprocessing.Pool, but the worker has exited{}",
        who(there), place(there.front().place), and_who_waits(finding));
    finding.fix =
        "Use concurrent.futures.ProcessPoolExecutor, which raises BrokenProcessPool; or pass a "
        "timeout to get(). Run `dmesg | grep -i kill` to see what killed the worker.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A multiprocessing.Pool waits for a worker that was killed",
    .explanation =
        R"(What you see: a rank is in pool.map, get or join; all its pool workers are idle; the other ranks wait for that rank.

Why: multiprocessing.Pool replaces a worker that dies, but loses the task that this worker had. The result never arrives. A worker that
is killed while it reads a task leaves the lock of the queue locked: no other worker gets a task any more.

How ddpdoctor knows: the rank waits for a result, every worker waits for a task, and a child has died or was replaced; or every worker of
the pool (multiprocessing, concurrent.futures, loky, pebble) waits for the lock with which it reads tasks. Executors
raise instead: BrokenProcessPool (concurrent.futures) or TerminatedWorkerError (joblib) in a log.

Fix:
    - with multiprocessing.Pool(2) as pool:
    + with concurrent.futures.ProcessPoolExecutor(2) as pool:)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::pool_worker_lost
