// SPDX-License-Identifier: Apache-2.0
// Sources: multiprocessing's pool.py and queues.py, concurrent/futures/process.py of CPython 3.8 to
// 3.14, loky 2 and 3, pebble 4 and 5 (pool/channel.py: one lock for all readers of its pipe).
#include "collector/detectors/evidence/pool_lock.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// How a worker of a pool reads its next task.
struct PoolReader {
  std::string_view loop;  // the function that a worker runs …
  std::string_view loop_file;
  std::string_view reads;  // … the one that reads a task …
  std::string_view reads_file;
  std::string_view acquire;  // … and the one that takes the lock for it
  std::string_view acquire_file;
};

constexpr std::string_view kQueues = "multiprocessing/queues.py";
constexpr std::array<PoolReader, 4> kReaders = {{
    {"worker", "multiprocessing/pool.py", "get", kQueues, "__enter__",
     "multiprocessing/synchronize.py"},
    {"_process_worker", "concurrent/futures/process.py", "get", kQueues, "__enter__",
     "multiprocessing/synchronize.py"},
    {"_process_worker", "loky/process_executor.py", "get", kQueues, "__enter__",
     "loky/backend/synchronize.py"},
    {"worker_process", "pebble/pool/process.py", "task_transaction", "pebble/pool/process.py",
     "unix_acquire", "pebble/pool/channel.py"},
}};

const PoolReader* reader_of(const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  const auto* const found =
      std::find_if(kReaders.begin(), kReaders.end(), [main](const PoolReader& reader) {
        return main != nullptr && python_frame_in(*main, reader.loop_file, {reader.loop});
      });
  return found == kReaders.end() ? nullptr : found;
}

/// Its innermost Python function takes the lock, to read a task.
const model::Frame* waits_for_lock(const PoolReader& reader, const model::Process& worker) {
  const model::Thread& main = *model::main_thread(worker);
  const model::Frame* inner = model::innermost_python(main);
  return asleep(main) && inner != nullptr &&
                 inner == python_frame_in(main, reader.acquire_file, {reader.acquire}) &&
                 python_frame_in(main, reader.reads_file, {reader.reads}) != nullptr
             ? inner
             : nullptr;
}

/// The living children that run a pool's loop; empty if a child was not read.
std::vector<const model::Process*> pool_workers(const model::JobModel& job,
                                                const model::Process& owner) {
  std::vector<const model::Process*> workers;
  for (const model::Process* child : children_of(job, owner)) {
    const model::Thread* main = model::main_thread(*child);
    if (alive(*child) && (main == nullptr || main->frames.empty())) {
      return {};
    }
    if (alive(*child) && reader_of(*child) != nullptr) {
      workers.push_back(child);
    }
  }
  return workers;
}

}  // namespace

std::optional<Finding> lock_of_lost_worker(const graph::Examination& examination) {
  const auto still = stuck(examination);
  for (const model::Process* owner : processes(examination.job)) {
    const model::Thread* main = model::main_thread(*owner);
    const auto workers = still && alive(*owner) && main != nullptr && !main->frames.empty()
                             ? pool_workers(examination.job, *owner)
                             : std::vector<const model::Process*>{};
    std::vector<pid_t> pids;
    const model::Frame* lock = nullptr;
    for (const model::Process* worker : workers) {
      if (const model::Frame* waits = waits_for_lock(*reader_of(*worker), *worker)) {
        lock = waits;
        pids.push_back(worker->pid);
      }
    }
    if (pids.size() < 2 || pids.size() != workers.size()) {
      continue;
    }
    Suspect suspect = suspect_in(examination, *owner, main);
    suspect.confidence = *still;
    suspect.note = who({suspect}) + " waits here for its pool";
    suspect.evidence = fmt::format("processes {} wait in {} ({}:{}), before they read a task",
                                   pids_said(pids), lock->function, lock->file, lock->line);
    Finding finding = accuse(examination, "pool-worker-lost", {suspect});
    finding.summary = fmt::format(
        "all workers of a pool of {} wait for the lock with which they read tasks ({}); none has "
        "it{}",
        who({suspect}), place(model::call_site(*lock)), and_who_waits(finding));
    finding.fix =
        "Run `dmesg | grep -i kill` on that node. Check time limits and signals that end workers: "
        "one that was killed while it had the lock left it locked.";
    return finding;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
