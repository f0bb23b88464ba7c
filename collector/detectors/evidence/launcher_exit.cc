// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/launcher_exit.h"

#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/evidence/held_output.h"
#include "collector/detectors/evidence/holdup.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/graph/servers.h"
#include "collector/graph/working.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kLauncherExit = "exit-hang";
constexpr std::string_view kEndJoined =
    "End that thread or child before joining it (a stop event, a last queue item, terminate()), or "
    "pass daemon=True.";

/// A process without remaining work: what it waits for, and how to end that.
struct Stay {
  Suspect suspect;
  std::string_view fix;
};

/// The thread or process that a launcher joins in its own code.
std::optional<Holdup> joins(const model::JobModel& job, const model::Process& process,
                            const model::Thread& main) {
  if (python_frame_in(main, "/threading.py", {"join"}) != nullptr) {
    const pid_t tid = main.waits_on ? target_thread(*main.waits_on).value_or(0) : 0;
    const auto joined =
        std::find_if(process.threads.begin(), process.threads.end(),
                     [tid](const model::Thread& thread) { return thread.tid == tid; });
    const model::Thread* thread =
        joined == process.threads.end() ? user_thread(process, main) : &*joined;
    Holdup held =
        thread == nullptr
            ? Holdup{.process = &process, .thread = &main, .what = "a thread that does not end"}
            : held_by(job, process, *thread);
    held.fix = kEndJoined;
    return held;
  }
  const model::WaitsOn* wait = waits_on(main, "process");
  const auto pid = wait == nullptr ? std::nullopt : target_pid(*wait);
  const model::Process* child = pid ? model::process(job, *pid) : nullptr;
  if (child == nullptr || !alive(*child)) {
    return std::nullopt;
  }
  return Holdup{.process = child,
                .thread = model::main_thread(*child),
                .what = fmt::format("child process {}", child->pid),
                .fix = kEndJoined};
}

/// A Python program that started ranks and is not a rank itself.
bool started_ranks(const model::JobModel& job, const model::Process& process) {
  const auto children = children_of(job, process);
  return !process.rank && std::any_of(children.begin(), children.end(),
                                      [](const auto* child) { return child->rank.has_value(); });
}

/// A process it started, or one of its threads, works: it may still exit by itself.
bool goes_on(const model::JobModel& job, const model::Process& process, const model::Thread& main) {
  const bool looks_up = main.waits_on && main.waits_on->limit;
  return main.state == 'R' || looks_up || graph::an_awaited_thread_works(job, process, main) ||
         graph::a_child_works(job, process) || graph::another_thread_works(job, process, main) ||
         graph::its_server_works(job, process, main);
}

/// `process` has no remaining work and does not exit.
std::optional<Stay> stays(const graph::Examination& examination, const model::Process& process,
                          Confidence still) {
  const model::JobModel& job = examination.job;
  const model::Thread* main = model::main_thread(process);
  if (main == nullptr || model::innermost_python(*main) == nullptr ||
      goes_on(job, process, *main)) {
    return std::nullopt;
  }
  auto held = holdup(job, process, *main);
  held = held ? held : joins(job, process, *main);
  const bool pauses =
      held && held->thread != nullptr && graph::waits_for_a_moment(job, *held->thread);
  if (!held || pauses) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, *held->process, held->thread);
  suspect.rank = std::nullopt;
  suspect.confidence = held->ends_by_itself ? Confidence::kPossible : still;
  suspect.note = fmt::format("process {} waits for {}, which is here", process.pid, held->what);
  if (held->start.known()) {
    suspect.place = held->start;
    suspect.note =
        fmt::format("process {} waits for {}, which is started here", process.pid, held->what);
  } else if (const model::Frame* own = own_user_frame(*main);
             own != nullptr && !suspect.place.known()) {
    suspect.place = model::call_site(*own);
    suspect.note = fmt::format("process {} waits here for {}", process.pid, held->what);
  }
  suspect.evidence = held->what;
  return Stay{.suspect = std::move(suspect), .fix = held->fix};
}

Finding ends_what_it_awaits(const graph::Examination& examination, Stay stay) {
  Finding finding = accuse(examination, kLauncherExit, {std::move(stay.suspect)});
  finding.fix = stay.fix;
  return finding;
}

/// The ranks have exited, but their launcher has not.
std::optional<Finding> launcher_stays(const graph::Examination& examination,
                                      const model::Process& process, Confidence still) {
  auto stay =
      started_ranks(examination.job, process) ? stays(examination, process, still) : std::nullopt;
  if (!stay) {
    return std::nullopt;
  }
  stay->suspect.evidence =
      fmt::format("every rank has ended; process {}, which started them, waits for {}", process.pid,
                  stay->suspect.evidence);
  Finding finding = ends_what_it_awaits(examination, std::move(*stay));
  finding.summary =
      fmt::format("all ranks are done and their launcher, process {}, does not exit", process.pid);
  return finding;
}

}  // namespace

bool all_ranks_are_done(const graph::Examination& examination) {
  return !examination.standings.empty() &&
         std::all_of(examination.standings.begin(), examination.standings.end(),
                     [&examination](const graph::Standing& standing) {
                       const auto exit = standing.process == nullptr
                                             ? std::nullopt
                                             : exit_of(examination.job, *standing.process);
                       return (standing.activity == graph::Activity::kExited && exit &&
                               exit->status == 0) ||
                              aborted_while_ending(examination.job, standing.rank, exit);
                     });
}

Findings launchers_that_stay(const graph::Examination& examination, Confidence still) {
  Findings findings;
  for (const model::Process* process : processes(examination.job)) {
    if (!alive(*process) || process->rank) {
      continue;
    }
    auto finding = launcher_stays(examination, *process, still);
    finding = finding ? std::move(finding) : output_is_held(examination, *process);
    if (finding) {
      findings.push_back(std::move(*finding));
    }
  }
  return findings;
}

Findings programs_that_stay(const graph::Examination& examination) {
  Findings findings;
  for (const model::Process* process : processes(examination.job)) {
    auto stay =
        alive(*process) ? stays(examination, *process, Confidence::kPossible) : std::nullopt;
    if (!stay) {
      continue;
    }
    stay->suspect.evidence =
        fmt::format("no rank is there (none is left, or none was started); process {} waits for {}",
                    process->pid, stay->suspect.evidence);
    Finding finding = ends_what_it_awaits(examination, std::move(*stay));
    finding.summary =
        fmt::format("process {} has no rank to wait for and does not exit", process->pid);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace ddpdoctor::detectors
