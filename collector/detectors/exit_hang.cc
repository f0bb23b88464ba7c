// SPDX-License-Identifier: Apache-2.0
// exit-hang: training is over, but a process does not exit: a non-daemon thread still runs, a child
// is joined at exit, a cleanup waits. The launcher waits for the process, the cluster for the
// launcher.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/context_term.h"
#include "collector/detectors/evidence/holdup.h"
#include "collector/detectors/evidence/launcher_exit.h"
#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/own_wait.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/teardown_call.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/servers.h"
#include "collector/graph/working.h"
#include "collector/model/native_code.h"
#include "collector/model/questions.h"
#include "collector/model/told_by_logs.h"

namespace ddpdoctor::detectors::exit_hang {
namespace {

using enum graph::Activity;

constexpr std::string_view kKind = "exit-hang";
constexpr std::string_view kEndsCommunicator = "ends a communicator";

/// Some rank still trains: then the rank that left too early is the cause, and other detectors
/// report it.
bool somebody_still_trains(const graph::Examination& examination) {
  return std::any_of(examination.standings.begin(), examination.standings.end(),
                     [](const graph::Standing& standing) {
                       return standing.waits_for_ranks() || standing.activity == kComputing ||
                              standing.activity == graph::Activity::kGpu ||
                              standing.activity == kDataLoader;
                     });
}

std::optional<Holdup> holdup_of(const graph::Examination& examination, model::Rank rank) {
  const graph::Standing* standing = examination.standing(rank);
  if (standing == nullptr || standing->process == nullptr || !alive(*standing->process)) {
    return std::nullopt;
  }
  const model::Thread* main = model::main_thread(*standing->process);
  return main == nullptr ? std::nullopt : holdup(examination.job, *standing->process, *main);
}

std::optional<Suspect> does_not_end(const graph::Examination& examination,
                                    const graph::Standing& standing, Confidence still) {
  const auto held = holdup_of(examination, standing.rank);
  if (!held) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, *held->process, held->thread);
  suspect.rank = standing.rank;
  suspect.confidence = held->ends_by_itself ? Confidence::kPossible : still;
  suspect.note = fmt::format("rank {} cannot exit before {} finishes", standing.rank, held->what);
  if (held->start.known()) {
    suspect.place = held->start;
    suspect.note += ", which starts here";
  }
  suspect.evidence = fmt::format(
      "the main thread of rank {}{} has finished its program and waits for {}", standing.rank,
      standing.process->pid > 0 ? fmt::format(" (process {})", standing.process->pid) : "",
      held->what);
  return suspect;
}

/// It only pauses, or writes to a process that does.
bool at_work(const model::JobModel& job, const Suspect& suspect) {
  return suspect.thread != nullptr && suspect.process != nullptr &&
         (graph::waits_for_a_moment(job, *suspect.thread) ||
          graph::its_server_works(job, *suspect.process, *suspect.thread));
}

/// ncclCommAbort has no peer to wait for. ncclCommDestroy and ncclCommFinalize wait for the other
/// ranks: while a rank is elsewhere, that rank is the cause.
bool waits_for_peers(const graph::Examination& examination, const TeardownCall& call) {
  return call.call->function.find("ncclCommAbort") == std::string::npos &&
         std::any_of(examination.standings.begin(), examination.standings.end(),
                     [](const graph::Standing& other) {
                       return other.process != nullptr && alive(*other.process) &&
                              !teardown_call(*other.process);
                     });
}

/// A long time in the end of a communicator is a defect if all its ranks are there.
std::optional<Suspect> ends_communicator(const graph::Examination& examination,
                                         const graph::Standing& standing, Confidence still) {
  const bool running = standing.process != nullptr && alive(*standing.process);
  const auto call = running ? teardown_call(*standing.process) : std::nullopt;
  if (!call || waits_for_peers(examination, *call)) {
    return std::nullopt;
  }
  const model::Thread* asker = call->asker == nullptr ? call->thread : call->asker;
  Suspect suspect = suspect_in(examination, *standing.process, asker);
  suspect.rank = standing.rank;
  suspect.confidence = still;
  suspect.deed = kEndsCommunicator;
  suspect.note =
      fmt::format("rank {} waits here for {}", standing.rank, function_said(*call->call));
  suspect.evidence =
      fmt::format("{} is in {}", full_thread_name(*call->thread), function_said(*call->call));
  if (call->asker != nullptr) {
    suspect.evidence += fmt::format("; {} waits in {} for it", full_thread_name(*call->asker),
                                    function_said(*call->asker_call));
  }
  return suspect;
}

Finding ended_communicator(const graph::Examination& examination,
                           const std::vector<Suspect>& there) {
  Finding finding = accuse(examination, kKind, there);
  const auto call = teardown_call(*there.front().process);
  if (finding.locations.empty()) {
    finding.locations.push_back({.rank = there.front().rank,
                                 .ranks = {},
                                 .file = call->call->file,
                                 .line = call->call->line,
                                 .function = call->call->function,
                                 .note = fmt::format("{} is here", full_thread_name(*call->thread)),
                                 .outcomes = {},
                                 .module = call->call->module});
  }
  finding.summary = fmt::format("{} {} still in {}, which ends a communicator", who(there),
                                is_or_are(finding.culprits), function_said(*call->call));
  finding.fix =
      "Capture the stacks again after 10 s. If the call is still there, update NCCL, or end the "
      "process with os._exit() once its results are written.";
  return finding;
}

/// A source of CPython, as its build names it.
bool is_source_of_python(std::string_view file) {
  return base::contains_any(file, {{"Modules/", "Python/", "Objects/"}});
}

/// A lock that no other thread can release: the thread has it, or one that has ended had it.
Finding waits_for_dead_lock(const graph::Examination& examination, const model::Process& process,
                            const model::Frame& asker, Confidence still) {
  const model::Thread& only = process.threads.front();
  const std::string function = function_said(asker);
  Suspect suspect = suspect_in(examination, process, &only);
  suspect.confidence = still;
  suspect.note = "the only thread of the process waits here for a lock";
  if (!suspect.place.known()) {
    suspect.place = model::call_site(asker);
  }
  suspect.evidence = fmt::format(
      "{} is the only thread of process {}; it ends the interpreter and waits for a lock in {}",
      full_thread_name(only), process.pid, function);
  Finding finding = accuse(examination, kKind, {suspect});
  finding.summary = fmt::format(
      "{} does not exit: its only thread waits for a lock in {}; it has the lock itself, or a "
      "thread "
      "that has ended",
      process.rank ? who({suspect}) : named(process.pid, "a process"), function);
  finding.fix =
      is_source_of_python(asker.file)
          ? "Update Python, whose own clean-up waits there. Until then, end the process with "
            "os._exit() once its results are written."
          : "Update the library of that function, or close what it holds before the program ends. "
            "Or end the process with os._exit() once its results are written.";
  return finding;
}

/// The last thread of a process that exits waits for a thread: daemon threads and the threads of
/// libraries have ended before.
Findings last_threads(const graph::Examination& examination, Confidence still) {
  Findings findings;
  for (const model::Process* process : processes(examination.job)) {
    const auto wait = alive(*process) ? waits_alone(*process) : std::nullopt;
    if (!wait || wait->asker == nullptr || !is_exiting(process->threads.front())) {
      continue;
    }
    const bool lock = wait->kind == OwnWaitKind::kLock && !model::takes_gil(wait->asker->function);
    if (lock && lists_native_threads(*process) && !forked_without_exec(examination.job, *process)) {
      findings.push_back(waits_for_dead_lock(examination, *process, *wait->asker, still));
      continue;
    }
    if (wait->kind != OwnWaitKind::kSignal) {
      continue;
    }
    const model::Thread& only = process->threads.front();
    // drop_gil waits only until another thread runs; of other waits, the thread may not be shown.
    if (!lists_native_threads(*process) && wait->asker->function != "drop_gil") {
      continue;
    }
    const std::string function = function_said(*wait->asker);
    Suspect suspect = suspect_in(examination, *process, &only);
    suspect.confidence = still;
    suspect.note = "the last thread of the process is here";
    suspect.evidence =
        fmt::format("{} is the only thread of process {}; it runs exit handlers and waits in {}",
                    full_thread_name(only), process->pid, function);
    Finding finding = accuse(examination, kKind, {suspect});
    finding.summary =
        fmt::format("{} does not exit: {} waits for a thread, and no other thread is left",
                    process->rank ? who({suspect}) : named(process->pid, "a process"), function);
    finding.fix =
        function == "drop_gil"
            ? "Join all threads before the program ends (no daemon threads), or update "
              "Python."
            : "Join all threads before the program ends, or update the library. Or end the "
              "process with os._exit() once its results are written.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// The main thread of a process without a rank waits in an exit handler, in native code, for a
/// thread that is still there.
Findings exit_handlers(const graph::Examination& examination) {
  Findings findings;
  for (const model::Process* process : processes(examination.job)) {
    const model::Thread* main = model::main_thread(*process);
    if (main == nullptr || !alive(*process) || process->rank || process->threads.size() < 2 ||
        !is_exiting(*main)) {
      continue;
    }
    const auto wait = own_wait(*main);
    const model::Frame* telling = wait ? model::telling_frame(*main) : nullptr;
    const bool works = std::any_of(process->threads.begin(), process->threads.end(),
                                   [](const model::Thread& one) { return one.state == 'R'; });
    if (telling == nullptr || wait->kind != OwnWaitKind::kSignal || works) {
      continue;
    }
    Suspect suspect = suspect_in(examination, *process, main);
    suspect.confidence = Confidence::kPossible;
    suspect.note = "the main thread is here";
    suspect.evidence = fmt::format("{} runs exit handlers and waits in {}", full_thread_name(*main),
                                   function_said(*telling));
    Finding finding = accuse(examination, kKind, {suspect});
    finding.summary = fmt::format("{} does not exit: {} waits for one of its threads",
                                  named(process->pid, "a process"), function_said(*telling));
    finding.fix =
        "Capture the stacks again after 10 s. If it still waits, end that library's threads before "
        "the program ends, or update it. Or call os._exit() once results are written.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

/// Only a log is known: ranks wrote what torch writes at the end of the program, then the monitor
/// of another rank, or of one of them, found that its watchdog had stopped.
Findings stopped_at_the_end(const model::JobModel& job) {
  model::RankSet ended;
  for (const model::Fact* fact : model::facts(job, model::kExitedByItself)) {
    ended = fact->rank ? ended.united({*fact->rank}) : ended;
  }
  model::RankSet stopped;
  double seconds = 0;
  for (const model::Fact* fact : model::facts(job, "watchdog-stuck")) {
    stopped = fact->rank ? stopped.united({*fact->rank}) : stopped;
    seconds = std::max(seconds, fact->number("seconds").value_or(0));
  }
  const bool all_ended = stopped.minus(ended).empty();  // and did not exit
  stopped = all_ended ? stopped : stopped.minus(ended);
  if (ended.empty() || stopped.empty() || !job.collectives.empty()) {
    return {};
  }
  Finding finding;
  finding.kind = kKind;
  finding.confidence = Confidence::kLikely;
  finding.culprits = stopped;
  finding.summary = fmt::format(
      "{} did not exit: {} NCCL watchdog{} made no progress for {:.0f} s after {} had finished",
      said(stopped), stopped.size() == 1 ? "its" : "their", stopped.size() == 1 ? "" : "s", seconds,
      all_ended ? (stopped.size() == 1 ? "it" : "they") : said(ended));
  finding.evidence.push_back(
      {.rank = ended.front(),
       .text = fmt::format("log: {} wrote that the program exits without destroy_process_group()",
                           said(ended))});
  finding.fix =
      "Call dist.destroy_process_group() on every rank before the program ends: without it, the "
      "communicators are destroyed while Python exits.";
  return {std::move(finding)};
}

Findings detect(const graph::Examination& examination) {
  if (Findings stopped = stopped_at_the_end(examination.job); !stopped.empty()) {
    return stopped;
  }
  const auto still = stuck(examination);
  if (Findings terms = context_terms(examination, kKind); !terms.empty()) {
    return terms;
  }
  if (Findings last = still ? last_threads(examination, *still) : Findings(); !last.empty()) {
    return last;
  }
  if (still && examination.standings.empty()) {
    Findings programs = programs_that_stay(examination);
    return programs.empty() ? exit_handlers(examination) : programs;
  }
  if (still && all_ranks_are_done(examination)) {
    return launchers_that_stay(examination, *still);
  }
  if (!still || somebody_still_trains(examination)) {
    return {};
  }
  std::vector<Suspect> suspects;
  for (const graph::Standing& standing : examination.standings) {
    if (auto suspect = does_not_end(examination, standing, *still)) {
      if (at_work(examination.job, *suspect)) {
        suspect->confidence = Confidence::kPossible;
      }
      suspects.push_back(std::move(*suspect));
    } else if (auto ends = ends_communicator(examination, standing, *still)) {
      suspects.push_back(std::move(*ends));
    }
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    if (there.front().deed == kEndsCommunicator) {
      findings.push_back(ended_communicator(examination, there));
      continue;
    }
    Finding finding = accuse(examination, kKind, there);
    const auto held = holdup_of(examination, *there.front().rank);
    finding.summary = fmt::format("{} {} finished but {} not exit; waiting for {}", who(there),
                                  is_or_are(finding.culprits),
                                  finding.culprits.size() == 1 ? "does" : "do", held->what);
    finding.fix = held->fix;
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "The work is finished, but a process does not exit",
    .explanation =
        R"(What you see: the last epoch is finished, the results are written, and the job does not exit. The launcher waits for one or more ranks.

Why: Python ends a process only after all its non-daemon threads have ended and its children were joined; a clean-up such as
destroy_process_group waits for peers.

How ddpdoctor knows: the main thread is in threading._shutdown, in multiprocessing's exit function or in destroy_process_group, and no
rank is training any more. Or a native thread is in ncclCommAbort, ncclCommDestroy or ncclCommFinalize, and torch's watchdog did not
ask for it. Or the only thread that is left runs exit handlers and waits for another thread or for a lock. Or all ranks have exited with status 0, and the program that started them is joining a thread or a child
that does not exit, or is reading their output (`torchrun … | tee log`) while an idle process left behind by a rank holds it open.

Fix:
    - threading.Thread(target=heartbeat).start()
    + threading.Thread(target=heartbeat, daemon=True).start())",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::exit_hang
