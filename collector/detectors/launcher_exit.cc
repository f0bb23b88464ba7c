// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/launcher_exit.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/holdup.h"
#include "collector/detectors/processes.h"
#include "collector/detectors/recorded_place.h"
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

/// A Python program that started ranks and is none.
bool started_ranks(const model::JobModel& job, const model::Process& process) {
  const auto children = children_of(job, process);
  return !process.rank && std::any_of(children.begin(), children.end(),
                                      [](const auto* child) { return child->rank.has_value(); });
}

/// What it started, or a thread of its, goes on: it may still end by itself.
bool goes_on(const model::JobModel& job, const model::Process& process, const model::Thread& main) {
  const bool looks_up = main.waits_on && main.waits_on->limit;
  return main.state == 'R' || looks_up || graph::an_awaited_thread_works(job, process, main) ||
         graph::a_child_works(job, process) || graph::another_thread_works(job, process, main) ||
         graph::its_server_works(job, process, main);
}

/// `process` has nothing left to do and does not exit.
std::optional<Suspect> stays(const graph::Examination& examination, const model::Process& process) {
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
  return suspect;
}

Finding ends_what_it_joins(const graph::Examination& examination, Suspect suspect) {
  Finding finding = accuse(examination, kKind, {std::move(suspect)});
  finding.fix =
      "End that thread or child before joining it (a stop event, a last item for its queue, "
      "terminate()), or start it with daemon=True.";
  return finding;
}

/// The ranks are gone and their launcher is not.
std::optional<Finding> launcher_stays(const graph::Examination& examination,
                                      const model::Process& process, Confidence still) {
  auto suspect =
      started_ranks(examination.job, process) ? stays(examination, process) : std::nullopt;
  if (!suspect) {
    return std::nullopt;
  }
  suspect->confidence = still;
  suspect->evidence =
      fmt::format("every rank has ended; process {}, which started them, waits for {}", process.pid,
                  suspect->evidence);
  Finding finding = ends_what_it_joins(examination, std::move(*suspect));
  finding.summary =
      fmt::format("all ranks are done and their launcher, process {}, does not exit", process.pid);
  return finding;
}

/// Those outside the command's tree that hold the other end of the pipe at which `thread` waits;
/// none when one of them has run lately, or when somebody else holds it as well.
std::vector<const model::Fact*> idle_holders(const model::JobModel& job,
                                             const model::Thread& thread) {
  constexpr double kIdle = 2;  // seconds
  std::vector<const model::Fact*> holders;
  if (!thread.waits_on || (thread.waits_on->kind != "pipe" && thread.waits_on->kind != "input")) {
    return holders;
  }
  const std::string& detail = thread.waits_on->detail;
  for (const model::Fact* fact : model::facts(job, "stray")) {
    if (detail.find(fmt::format(" pid {} (", fact->pid.value_or(0))) != std::string::npos) {
      holders.push_back(fact);
    }
  }
  std::size_t named = 0;
  for (std::size_t at = detail.find(" pid "); at != std::string::npos;
       at = detail.find(" pid ", at + 1)) {
    ++named;
  }
  const bool idle = std::all_of(holders.begin(), holders.end(), [](const model::Fact* fact) {
    return fact->number("idle_seconds").value_or(0) >= kIdle;
  });
  return idle && named == holders.size() ? holders : std::vector<const model::Fact*>{};
}

/// Where a rank started it; by its time where its pid was not known then.
const model::Fact* start_of(const model::JobModel& job, const model::Fact& stray) {
  constexpr double kNear = 0.1;  // seconds
  const double born = stray.number("start_time").value_or(0);
  const auto distance = [born](const model::Fact& fact) {
    return std::abs(fact.number("time").value_or(0) - born);
  };
  const model::Fact* best = nullptr;
  for (const model::Fact* fact : model::facts(job, "child-started")) {
    if (fact->pid && fact->pid == stray.pid) {
      return fact;
    }
    const bool other = stray.rank && fact->rank != stray.rank;
    const bool near = !fact->pid && !other && distance(*fact) < kNear;
    best = near && (best == nullptr || distance(*fact) < distance(*best)) ? fact : best;
  }
  return best;
}

/// Somebody reads the ranks' output until its last holder has closed it: also one that a rank
/// started and left.
std::optional<Finding> output_is_held(const graph::Examination& examination,
                                      const model::Process& reader) {
  const model::JobModel& job = examination.job;
  const model::Thread* main = model::main_thread(reader);
  std::vector<Suspect> suspects;
  std::string left;
  for (const model::Fact* stray :
       main == nullptr ? std::vector<const model::Fact*>{} : idle_holders(job, *main)) {
    const std::string name =
        fmt::format("process {} ({})", *stray->pid, stray->text("command").value_or("?"));
    Suspect suspect = suspect_in(examination, reader, main);
    suspect.rank = std::nullopt;
    suspect.confidence = Confidence::kLikely;
    suspect.note = fmt::format("process {} reads here until {} ends", reader.pid, name);
    if (const model::Fact* start = start_of(job, *stray)) {
      suspect.rank = start->rank;
      const model::CallSite place = recorded_place(*start);
      suspect.place = place.known() ? place : suspect.place;
      suspect.note = place.known() ? fmt::format("{} was started here", name) : suspect.note;
    }
    suspect.evidence = fmt::format(
        "{} holds the other end of the pipe at which process {} waits, "
        "and has not run for {}",
        name, reader.pid, base::duration(stray->number("idle_seconds").value_or(0)));
    left += (left.empty() ? "" : " and ") + name;
    suspects.push_back(std::move(suspect));
  }
  if (suspects.empty()) {
    return std::nullopt;
  }
  Finding finding = accuse(examination, kKind, suspects);
  finding.summary = fmt::format(
      "all ranks are done, but {}{} {} the output open that process {} reads", left,
      finding.culprits.empty() ? std::string()
                               : fmt::format(", left behind by {},", said(finding.culprits)),
      suspects.size() == 1 ? "lives on and holds" : "live on and hold", reader.pid);
  finding.fix =
      "End it before the rank ends, or start it with an output of its own "
      "(stdout=subprocess.DEVNULL, stderr too): a pipe ends when its last holder has closed it.";
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
                       return (standing.activity == kExited && exit && exit->status == 0) ||
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
    auto suspect = alive(*process) ? stays(examination, *process) : std::nullopt;
    if (!suspect) {
      continue;
    }
    suspect->confidence = Confidence::kPossible;
    suspect->evidence =
        fmt::format("no rank is there (none is left, or none was started); process {} waits for {}",
                    process->pid, suspect->evidence);
    Finding finding = ends_what_it_joins(examination, std::move(*suspect));
    finding.summary =
        fmt::format("process {} has no rank to wait for and does not exit", process->pid);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace ddpdoctor::detectors
