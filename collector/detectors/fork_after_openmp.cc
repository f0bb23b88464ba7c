// SPDX-License-Identifier: Apache-2.0
// fork-after-openmp: a process used a native thread pool and forked. The child has the pool's
// bookkeeping but none of its threads: its first parallel region (a matmul, an einsum) waits for a
// team that does not exist. The parent waits for the child, the other ranks for the parent.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/native_code.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::fork_after_openmp {
namespace {

constexpr std::string_view kKind = "fork-after-openmp";

/// Its own team would be visible as pool threads, even while it sleeps between regions.
bool has_team(const model::Process& process) {
  for (const model::Thread& thread : process.threads) {
    if (serves_native_pool(thread)) {
      return true;
    }
  }
  return false;
}

/// Threads with unreadable stacks might be the team.
bool all_threads_read(const model::Process& process) {
  for (const model::Thread& thread : process.threads) {
    if (thread.frames.empty()) {
      return false;
    }
  }
  return true;
}

/// In a function in which only a team of several threads waits. If the others are missing there was
/// a fork, whichever process was the parent; provable if the tool shows threads without Python.
bool waits_for_absent_team(const model::Process& process, const model::Frame& pool) {
  const bool for_team = pool.function.find("gomp_team_barrier_wait") != std::string::npos ||
                        pool.function.find("__kmp_join_barrier") != std::string::npos ||
                        pool.function.find("__kmp_hyper_barrier") != std::string::npos;
  const std::string& tool = process.threads.front().capture;
  return for_team && (tool.ends_with(" gdb") || tool.ends_with(" eu-stack"));
}

std::string pool_name(const model::Frame& frame) {
  return frame.function.empty() ? frame.module : frame.function;
}

/// "OpenMP", "numba's workqueue".
std::string_view library_of(const model::Thread* thread) {
  const model::Frame* frame = thread == nullptr ? nullptr : waits_for_native_pool(*thread);
  const model::NativePool* pool = frame == nullptr ? nullptr : model::pool_of(*frame);
  return pool == nullptr ? std::string_view("OpenMP") : pool->name;
}

/// torch.set_num_threads() sets the size of these.
bool is_of_torch(std::string_view library) {
  return library == "OpenMP" || library == "MKL";
}

/// The line of the wait, else the pool's function.
std::string where(const Suspect& suspect) {
  const model::Frame* pool =
      suspect.thread == nullptr ? nullptr : waits_for_native_pool(*suspect.thread);
  return suspect.place.known() || pool == nullptr ? place(suspect.place) : pool_name(*pool);
}

bool parent_has_team(const model::JobModel& job, const model::Process& child) {
  for (const model::Fact* fact : model::facts(job, "openmp-team")) {
    if (fact->pid == child.ppid && fact->number("threads").value_or(0) > 0) {
      return true;
    }
  }
  return false;
}

std::optional<Suspect> forked_into_dead_pool(const graph::Examination& examination,
                                             const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  if (!alive(process) || main == nullptr || has_team(process)) {
    return std::nullopt;
  }
  const model::Frame* pool = waits_for_native_pool(*main);
  if (pool == nullptr || waits_for_mutex(*main) ||
      (!forked_without_exec(examination.job, process) && !waits_for_absent_team(process, *pool))) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, process, main);
  suspect.confidence = Confidence::kCertain;
  if (!asleep(*main) || !all_threads_read(process)) {
    // A spinning wait looks like a busy parallel region, and a hidden team like none.
    const auto sure = stuck(examination);
    if (!sure) {
      return std::nullopt;
    }
    suspect.confidence = *sure;
  }
  suspect.note = fmt::format("{}, forked by {}, waits here", named(process.pid, "the child"),
                             named(process.ppid, "the rank"));
  suspect.evidence = fmt::format(
      "{} was forked from {} without exec, is waiting in {} and has no thread of that pool{}",
      named(process.pid, "the child"), named(process.ppid, "its parent"), pool_name(*pool),
      parent_has_team(examination.job, process) ? "; the threads of the pool are in the parent"
                                                : "");
  return suspect;
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    if (auto suspect = forked_into_dead_pool(examination, *process)) {
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    const std::string_view library = library_of(there.front().thread);
    const model::Process* child = there.front().process;
    const bool unknown = !there.front().rank && !served_rank(examination.job, *child);
    const std::string subject =
        unknown ? fmt::format("{}, a forked child,", named(child->pid, "a process"))
                : fmt::format("a forked child of {}", who(there));
    finding.summary = fmt::format("{} is stuck in {} ({}), whose threads fork() does not copy{}",
                                  subject, library, where(there.front()), and_who_waits(finding));
    finding.fix =
        "Start the child with the spawn or forkserver method (multiprocessing_context=\"spawn\" "
        "for a DataLoader)";
    finding.fix += is_of_torch(library)
                       ? "; or call torch.set_num_threads(1) before the fork."
                       : fmt::format(". Or fork before the first call that uses {}.", library);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A forked child uses a thread pool that only its parent has",
    .explanation =
        R"(What you see: a child process (a DataLoader worker, multiprocessing.Process, os.fork) stays in a matmul, einsum or
numpy.dot forever at 0 % CPU; its rank waits for the child, the other ranks for that rank.

Why: fork copies the memory, but of the threads only the one that called it. GNU OpenMP and OpenBLAS keep a team of sleeping threads;
in the child, memory still says that the team exists, but its threads do not, so the first parallel region waits for them.

How ddpdoctor knows: the process was started by fork without exec, its main thread waits in a pool of native threads (OpenMP, MKL,
OpenBLAS, TBB, numba's workqueue, rayon, and others), and none of its threads belongs to that pool.

Fix:
    - context = multiprocessing.get_context("fork")
    + context = multiprocessing.get_context("spawn")   # DataLoader(..., multiprocessing_context="spawn")
or run no parallel computation before the fork.)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::fork_after_openmp
