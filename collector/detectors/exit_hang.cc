// SPDX-License-Identifier: Apache-2.0
// exit-hang: training is over, yet a process does not end: a thread that is no daemon still runs, a
// child is joined at exit, a clean-up waits. The launcher waits for the process, the cluster for
// the launcher.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/agreement.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/processes.h"
#include "collector/detectors/signs.h"
#include "collector/detectors/suspects.h"
#include "collector/detectors/wording.h"
#include "collector/graph/servers.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using enum graph::Activity;

constexpr std::string_view kKind = "exit-hang";

/// What the end of a process waits for: the thread or the process to blame, and a word for it.
struct Holdup {
  const model::Process* process = nullptr;
  const model::Thread* thread = nullptr;
  std::string what;
};

bool waits_for_threads(const model::Thread& main) {
  return python_frame_in(main, "/threading.py", {"_shutdown"}) != nullptr ||
         model::has_native_frame(main, "wait_for_thread_shutdown");
}

bool waits_for_children(const model::Thread& main) {
  return python_frame_in(main, "multiprocessing/util.py", {"_exit_function", "_run_finalizers"}) !=
             nullptr ||
         python_frame_in(main, "concurrent/futures/process.py", {"_python_exit", "shutdown"}) !=
             nullptr;
}

/// A function that the program registered with atexit: called by the interpreter's end, not by its
/// main module.
bool runs_atexit(const model::Thread& main) {
  const bool ends = model::has_native_frame(main, "atexit_callfuncs") ||
                    model::has_native_frame(main, "Py_FinalizeEx");
  return ends && own_user_frame(main) != nullptr;
}

bool destroys_group(const model::Thread& main) {
  return python_frame_in(main, "torch/distributed/distributed_c10d.py",
                         {"destroy_process_group"}) != nullptr;
}

/// A thread of Python with a line of the user's, other than the main thread. Daemons do not hold up
/// the end, but nothing tells them apart from outside; one that sits in user code is the best
/// candidate.
const model::Thread* user_thread(const model::Process& process, const model::Thread& main) {
  const auto found = std::find_if(process.threads.begin(), process.threads.end(),
                                  [&main](const model::Thread& thread) {
                                    return &thread != &main && own_user_frame(thread) != nullptr;
                                  });
  return found == process.threads.end() ? nullptr : &*found;
}

std::optional<Holdup> holdup(const model::JobModel& job, const model::Process& process,
                             const model::Thread& main) {
  if (waits_for_threads(main)) {
    const model::Thread* thread = user_thread(process, main);
    return Holdup{.process = &process,
                  .thread = thread == nullptr ? &main : thread,
                  .what = thread == nullptr
                              ? "a thread that does not end"
                              : fmt::format("thread {} ({})", thread->tid, thread->name)};
  }
  if (waits_for_children(main)) {
    for (const model::Process* child : children_of(job, process)) {
      const model::Thread* thread = model::main_thread(*child);
      if (alive(*child) && thread != nullptr && own_user_frame(*thread) != nullptr) {
        return Holdup{.process = child,
                      .thread = thread,
                      .what = fmt::format("child process {}", child->pid)};
      }
    }
    return Holdup{.process = &process, .thread = &main, .what = "its child processes"};
  }
  if (runs_atexit(main)) {
    return Holdup{
        .process = &process, .thread = &main, .what = "a function registered with atexit"};
  }
  if (destroys_group(main)) {
    return Holdup{.process = &process, .thread = &main, .what = "destroy_process_group"};
  }
  return std::nullopt;
}

/// Somebody still trains: then the one who left too early is the story, and other detectors tell
/// it.
bool somebody_still_trains(const graph::Examination& examination) {
  return std::any_of(examination.standings.begin(), examination.standings.end(),
                     [](const graph::Standing& standing) {
                       return standing.waits_for_ranks() || standing.activity == kComputing ||
                              standing.activity == kDataLoader;
                     });
}

std::optional<Suspect> does_not_end(const graph::Examination& examination,
                                    const graph::Standing& standing) {
  if (standing.process == nullptr || !alive(*standing.process)) {
    return std::nullopt;
  }
  const model::Thread* main = model::main_thread(*standing.process);
  const auto held =
      main == nullptr ? std::nullopt : holdup(examination.job, *standing.process, *main);
  if (!held) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, *held->process, held->thread);
  suspect.rank = standing.rank;
  suspect.note = fmt::format("rank {} cannot exit before {} ends", standing.rank, held->what);
  suspect.evidence =
      fmt::format("the main thread of rank {} (process {}) is past its program and waits for {}",
                  standing.rank, standing.process->pid, held->what);
  return suspect;
}

/// The thread or the process that a launcher joins in its own code.
std::optional<Holdup> joins(const model::JobModel& job, const model::Process& process,
                            const model::Thread& main) {
  if (python_frame_in(main, "/threading.py", {"join"}) != nullptr) {
    const pid_t tid = main.waits_on ? target_thread(*main.waits_on).value_or(0) : 0;
    const auto joined =
        std::find_if(process.threads.begin(), process.threads.end(),
                     [tid](const model::Thread& thread) { return thread.tid == tid; });
    const model::Thread* thread =
        joined == process.threads.end() ? user_thread(process, main) : &*joined;
    return Holdup{.process = &process,
                  .thread = thread == nullptr ? &main : thread,
                  .what = thread == nullptr
                              ? "a thread that does not end"
                              : fmt::format("thread {} ({})", thread->tid, thread->name)};
  }
  const model::WaitsOn* wait = waits_on(main, "process");
  const auto pid = wait == nullptr ? std::nullopt : target_pid(*wait);
  const model::Process* child = pid ? model::process(job, *pid) : nullptr;
  if (child == nullptr || !alive(*child)) {
    return std::nullopt;
  }
  return Holdup{.process = child,
                .thread = model::main_thread(*child),
                .what = fmt::format("child process {}", child->pid)};
}

/// Every rank has ended, and well.
bool all_ranks_are_done(const graph::Examination& examination) {
  return !examination.standings.empty() &&
         std::all_of(examination.standings.begin(), examination.standings.end(),
                     [](const graph::Standing& standing) {
                       return standing.activity == kExited && standing.process != nullptr &&
                              standing.process->exit && standing.process->exit->status == 0;
                     });
}

/// A Python program that started ranks and is none.
bool started_ranks(const model::JobModel& job, const model::Process& process) {
  const auto children = children_of(job, process);
  return !process.rank && std::any_of(children.begin(), children.end(),
                                      [](const auto* child) { return child->rank.has_value(); });
}

/// What it started, or a thread of its, goes on: it may still end by itself.
bool goes_on(const model::JobModel& job, const model::Process& process, const model::Thread& main) {
  return main.state == 'R' || graph::waits_for_a_moment(job, main) ||
         graph::a_child_works(job, process) || graph::another_thread_works(job, process, main) ||
         graph::its_server_works(job, process, main);
}

/// The ranks are gone and their launcher is not.
std::optional<Suspect> launcher_stays(const graph::Examination& examination,
                                      const model::Process& process) {
  const model::JobModel& job = examination.job;
  const model::Thread* main = model::main_thread(process);
  if (!alive(process) || main == nullptr || model::innermost_python(*main) == nullptr ||
      !started_ranks(job, process) || goes_on(job, process, *main)) {
    return std::nullopt;
  }
  auto held = holdup(job, process, *main);
  held = held ? held : joins(job, process, *main);
  if (!held) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, *held->process, held->thread);
  suspect.rank = std::nullopt;
  suspect.note = fmt::format("process {} waits for {}, which is here", process.pid, held->what);
  suspect.evidence = fmt::format(
      "every rank has ended with status 0; process {}, which started them, waits for {}",
      process.pid, held->what);
  return suspect;
}

Findings launchers_that_stay(const graph::Examination& examination, Confidence still) {
  Findings findings;
  for (const model::Process* process : processes(examination.job)) {
    auto suspect = launcher_stays(examination, *process);
    if (!suspect) {
      continue;
    }
    suspect->confidence = still;
    Finding finding = accuse(examination, kKind, {std::move(*suspect)});
    finding.summary = fmt::format(
        "all ranks are done and their launcher, process {}, does not exit", process->pid);
    finding.fix =
        "End that thread or child before joining it (a stop event, a last item for its queue, "
        "terminate()), or start it with daemon=True.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

Findings detect(const graph::Examination& examination) {
  const auto still = stuck(examination);
  if (still && all_ranks_are_done(examination)) {
    return launchers_that_stay(examination, *still);
  }
  if (!still || somebody_still_trains(examination)) {
    return {};
  }
  std::vector<Suspect> suspects;
  for (const graph::Standing& standing : examination.standings) {
    if (auto suspect = does_not_end(examination, standing)) {
      const bool at_work = suspect->thread != nullptr &&
                           graph::waits_for_a_moment(examination.job, *suspect->thread);
      suspect->confidence = at_work ? Confidence::kPossible : *still;
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary =
        fmt::format("{} {} done and {} not exit: {}", who(there), is_or_are(finding.culprits),
                    finding.culprits.size() == 1 ? "does" : "do", there.front().note);
    finding.fix =
        "Give that thread daemon=True or a stop event, end child processes and pools before the "
        "program ends, and call "
        "destroy_process_group() on every rank.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector exit_hang;
const Detector exit_hang{
    .kind = kKind,
    .title = "The work is done and a process does not exit",
    .explanation =
        R"(What you see: the last epoch is over, the results are written, and the job stays. The launcher waits for one or more ranks.

Why: Python ends a process only after all its non-daemon threads have ended and its children were joined; a clean-up such as
destroy_process_group waits for peers.

How it is recognised: the main thread is in threading._shutdown, in multiprocessing's exit function or in
destroy_process_group, and no rank trains any more. Or all ranks have ended with status 0, and the program that started them joins a thread
or a child that does not end.

Fix:
    - threading.Thread(target=heartbeat).start()
    + threading.Thread(target=heartbeat, daemon=True).start())",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors
