// SPDX-License-Identifier: Apache-2.0
// fork-after-openmp: a process used a native thread pool and forked. The child has the pool's
// bookkeeping but none of its threads: its first parallel region (a matmul, an einsum) waits for a
// team that does not exist. The parent waits for the child, the other ranks for the parent.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/native_code.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::fork_after_openmp {
namespace {

constexpr std::string_view kKind = "fork-after-openmp";
constexpr std::string_view kInLibrary = "is in a library with a pool";

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
bool waits_for_absent_team(const model::Process& process, const model::Thread& main) {
  const bool for_team =
      std::any_of(main.frames.begin(), main.frames.end(), [](const model::Frame& frame) {
        return frame.function.find("gomp_team_barrier_wait") != std::string::npos ||
               frame.function.find("__kmp_join_barrier") != std::string::npos ||
               frame.function.find("__kmp_hyper_barrier") != std::string::npos;
      });
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
      (!forked_without_exec(examination.job, process) && !waits_for_absent_team(process, *main))) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, process, main);
  suspect.confidence = Confidence::kCertain;
  const bool proven =
      all_threads_read(process) && (asleep(*main) || waits_for_absent_team(process, *main));
  if (!proven) {
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

/// A library whose Python functions compute in a native pool of its own.
struct PooledLibrary {
  std::string_view folder;
  std::string_view name;
  std::string_view pool;
};

// https://docs.pola.rs/user-guide/misc/multiprocessing
constexpr PooledLibrary kPolars = {.folder = "polars", .name = "Polars", .pool = "rayon"};

bool is_of_library(const model::Frame& frame, const PooledLibrary& library) {
  return frame.language == model::Language::kPython &&
         (frame.file.starts_with(fmt::format("{}/", library.folder)) ||
          frame.file.find(fmt::format("-packages/{}/", library.folder)) != std::string::npos);
}

/// The frame that called the library in which a stack without native frames ends; nullptr if it
/// ends elsewhere.
const model::Frame* caller_of(const PooledLibrary& library, const model::Thread& thread) {
  const model::Frame* inner = nullptr;
  for (const model::Frame& frame : thread.frames) {
    if (frame.language != model::Language::kPython) {
      return nullptr;
    }
    if (!is_of_library(frame, library)) {
      return inner == nullptr ? nullptr : &frame;
    }
    inner = &frame;
  }
  return nullptr;
}

/// Python frames alone do not show whether it computes or waits for its pool.
std::optional<Suspect> forked_into_library(const graph::Examination& examination,
                                           const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  const model::Frame* caller = main == nullptr ? nullptr : caller_of(kPolars, *main);
  if (caller == nullptr || !alive(process) || !asleep(*main) || !stuck(examination) ||
      !forked_without_exec(examination.job, process)) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, process, main);
  suspect.place = model::call_site(*caller);
  suspect.confidence = Confidence::kPossible;
  suspect.deed = kInLibrary;
  suspect.note =
      fmt::format("{} is in {} here", named(process.pid, "a forked child"), kPolars.name);
  suspect.evidence = fmt::format(
      "{} was forked without exec and is in {}() of {}, which computes in threads of {}",
      named(process.pid, "the child"), main->frames.front().function, kPolars.name, kPolars.pool);
  return suspect;
}

Finding in_library(const graph::Examination& examination, const std::vector<Suspect>& there) {
  Finding finding = accuse(examination, kKind, there);
  finding.summary =
      fmt::format("{} {} in {} ({}), which may wait for threads of {} that fork() does not copy{}",
                  there.size() > 1 ? fmt::format("{} forked children", there.size())
                                   : named(there.front().process->pid, "a forked child"),
                  there.size() > 1 ? "are" : "is", kPolars.name, place(there.front().place),
                  kPolars.pool, and_who_waits(finding));
  finding.fix = fmt::format(
      "Start the child with the spawn or forkserver method (multiprocessing_context=\"spawn\" for "
      "a "
      "DataLoader): {} must not be used before a fork.",
      kPolars.name);
  return finding;
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    auto suspect = forked_into_dead_pool(examination, *process);
    suspect = suspect ? std::move(suspect) : forked_into_library(examination, *process);
    if (suspect) {
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    if (there.front().deed == kInLibrary) {
      findings.push_back(in_library(examination, there));
      continue;
    }
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
  return findings.empty() ? findings_from_text(examination, kKind) : findings;
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
OpenBLAS, TBB, numba's workqueue, rayon, and others), and none of its threads belongs to that pool. Of a dump without native frames:
a forked child is in Polars (possible). In a log: numba's "Terminating: fork() called from a process already using GNU OpenMP".

Fix:
    - context = multiprocessing.get_context("fork")
    + context = multiprocessing.get_context("spawn")   # DataLoader(..., multiprocessing_context="spawn")
or run no parallel computation before the fork.)",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::fork_after_openmp
