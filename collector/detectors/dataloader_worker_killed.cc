// SPDX-License-Identifier: Apache-2.0
// dataloader-worker-killed: a DataLoader worker was killed (out of memory, bus error, a crash in
// native code). The rank raises, or waits if nothing detects it; the other ranks wait for it.
#include <algorithm>

#include <fmt/format.h>

#include "base/path_ends.h"
#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/ended_outside.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::dataloader_worker_killed {
namespace {

constexpr std::string_view kKind = "dataloader-worker-killed";
constexpr int kBusError = 7;

/// It waits at a queue or pipe of its own: the child that has ended fed that one.
bool waits_at_own_queue(const model::Thread& thread) {
  const auto called = called_by_user(thread);
  const auto in = [&called](std::string_view part) {
    return std::any_of(called.begin(), called.end(), [part](const model::Frame& frame) {
      return base::path_contains(frame.file, part);
    });
  };
  return own_user_frame(thread) != nullptr && !in("torch/utils/data/") &&
         (in("multiprocessing/queues.py") || in("multiprocessing/connection.py") ||
          in("multiprocessing/synchronize.py"));
}

/// A worker that was ended by a signal while its rank is running. DataLoader itself ends its
/// workers with SIGTERM.
std::optional<Suspect> killed_worker(const graph::Examination& examination,
                                     const model::Process& worker) {
  const auto exit = exit_of(examination.job, worker);
  if (worker.role != model::Role::kDataLoaderWorker || !exit || !exit->signal ||
      *exit->signal == 15) {
    return std::nullopt;
  }
  const model::Process* rank = model::process(examination.job, worker.ppid);
  const model::Thread* main = rank == nullptr ? nullptr : model::main_thread(*rank);
  if (main != nullptr && waits_at_own_queue(*main)) {
    return std::nullopt;
  }
  Suspect suspect = rank == nullptr ? Suspect{} : suspect_in(examination, *rank, main);
  suspect.rank = served_rank(examination.job, worker);
  suspect.process = &worker;
  suspect.confidence =
      main != nullptr && waits_for_batch(*main) ? Confidence::kCertain : Confidence::kLikely;
  suspect.note = fmt::format("{} is waiting here for worker {}, which was {}", who({suspect}),
                             worker.pid, how_it_ended(exit));
  suspect.evidence = fmt::format("DataLoader worker {} of process {} was {}", worker.pid,
                                 worker.ppid, how_it_ended(exit));
  return suspect;
}

/// A rank that could not fetch a batch because the worker at the other end of the connection had
/// exited by itself (os._exit), for which torch has no message of its own.
Findings lost_connections(const graph::Examination& examination) {
  Findings out;
  for (const Traceback& one : tracebacks(examination.job)) {
    const bool lost =
        one.of_batch && one.rank && !one.ignored &&
        (one.exception.starts_with("ConnectionResetError") ||
         one.exception.starts_with("ConnectionRefusedError") ||
         one.exception.starts_with("EOFError") || one.exception.starts_with("BrokenPipeError"));
    if (!lost) {
      continue;
    }
    Finding finding;
    finding.kind = kKind;
    finding.confidence = Confidence::kLikely;
    finding.culprits.insert(*one.rank);
    if (one.place.known()) {
      finding.locations.push_back(
          location(one.place, finding.culprits,
                   fmt::format("{} read a batch from its worker here", said(finding.culprits))));
    }
    finding.evidence.push_back(
        {.rank = one.rank, .text = "log: " + base::elide(base::printable(one.exception), 200)});
    add_waiting(examination, finding);
    finding.summary =
        fmt::format("a DataLoader worker of {} exited while the rank read a batch from it{}",
                    said(finding.culprits), and_who_waits(finding));
    finding.fix =
        "Run the dataset with num_workers=0 to see what ends the worker (os._exit, sys.exit, "
        "native code).";
    out.push_back(std::move(finding));
  }
  return out;
}

/// The pid in torch's message, "(pid 617)" or "(pid(s) 617)"; empty if the finding quotes none.
std::string pid_in(const ToldFinding& told) {
  for (const Evidence& one : told.finding.evidence) {
    const std::size_t at = one.text.find("DataLoader worker (pid");
    const std::size_t digit = one.text.find_first_of("0123456789", at);
    if (at != std::string::npos && digit != std::string::npos) {
      return one.text.substr(digit, one.text.find_first_not_of("0123456789", digit) - digit);
    }
  }
  return {};
}

/// torch reports one lost worker twice: how it ended, where no line of the user is near, then
/// "exited unexpectedly" with the line that fetched the batch. Both are one finding.
void join_reports(std::vector<ToldFinding>& told) {
  const auto second = [](const ToldFinding& one, const ToldFinding& other) {
    return one.finding.locations.empty() && !other.finding.locations.empty() &&
           one.finding.culprits == other.finding.culprits && !pid_in(one).empty() &&
           pid_in(one) == pid_in(other);
  };
  for (ToldFinding& one : told) {
    const auto other = std::find_if(told.begin(), told.end(),
                                    [&](const ToldFinding& two) { return second(one, two); });
    if (other == told.end()) {
      continue;
    }
    Finding& joined = one.finding;
    const Finding& placing = other->finding;
    if (one.says != Message::kSignal) {
      one.says = other->says;
      one.who = other->who;
      one.did = other->did;
    }
    const Location& line = placing.locations.front();
    one.place = placed({.file = line.file, .line = line.line, .function = line.function});
    joined.locations = placing.locations;
    joined.confidence = std::max(joined.confidence, placing.confidence);
    joined.evidence.insert(joined.evidence.end(), placing.evidence.begin(), placing.evidence.end());
    told.erase(other);
    return;
  }
}

/// The worker's own traceback is in the log: dataloader-worker-raised reports it. A worker that a
/// signal ended raised nothing.
bool failed_to_start(const std::vector<Traceback>& all, const ToldFinding& told) {
  const model::RankSet& of = told.finding.culprits;
  return told.says != Message::kSignal &&
         std::any_of(all.begin(), all.end(), [&of](const Traceback& one) {
           return starts_without_guard(one) && (!one.rank || of.empty() || of.contains(*one.rank));
         });
}

std::string fix_for(const model::Exit& exit) {
  return exit.signal == kBusError ? "Enlarge /dev/shm (--shm-size, --ipc=host) or lower "
                                    "num_workers: SIGBUS means that it is full."
         : exit.signal == 9
             ? "Lower num_workers or the memory of the dataset; check `dmesg` and the memory "
               "limit of the container for the out-of-memory killer."
             : "Run the dataset with num_workers=0 and `python -X faulthandler`: its "
               "native code crashed.";
}

/// A scheduler reports that it enforced a memory limit: that is what killed the worker.
void name_memory_limit(const model::JobModel& job, std::vector<ToldFinding>& told) {
  const auto limit = told.empty() ? std::nullopt : told_memory_limit(job);
  for (ToldFinding& one : told) {
    auto& evidence = one.finding.evidence;
    const bool killed = std::any_of(evidence.begin(), evidence.end(), [](const Evidence& quoted) {
      return base::contains(quoted.text, "killed by signal: Killed");
    });
    if (limit && killed) {
      const std::string pid = pid_in(one);
      one.rest += fmt::format(": {}{} was reached", pid.empty() ? "" : "worker " + pid + ", ",
                              limit->whose);
      one.finding.fix = limit->fix;
      evidence.push_back({.rank = {}, .text = "log: " + limit->line});
    }
  }
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    if (auto suspect = killed_worker(examination, *process)) {
      suspects.push_back(std::move(*suspect));
    }
  }
  if (suspects.empty()) {
    // If numba ended the workers, fork-after-openmp reports why.
    auto told = sightings(examination.job, "fork-after-openmp").empty()
                    ? told_by_text(examination, kKind)
                    : std::vector<ToldFinding>();
    join_reports(told);
    const auto all = told.empty() ? std::vector<Traceback>{} : tracebacks(examination.job);
    const auto erased =
        std::erase_if(told, [&all](const ToldFinding& one) { return failed_to_start(all, one); });
    name_memory_limit(examination.job, told);
    if (told.empty() && erased == 0) {
      return lost_connections(examination);
    }
    Findings findings = summarized(std::move(told));
    std::for_each(findings.begin(), findings.end(),
                  [&](Finding& one) { add_batch_readers(examination, one); });
    return findings;
  }
  Findings findings;
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    const auto exit = exit_of(examination.job, *there.front().process);
    finding.summary = fmt::format("a DataLoader worker of {} was {}{}", who(there),
                                  how_it_ended(exit), and_who_waits(finding));
    finding.fix = fix_for(*exit);
    finding.details["signal"] = static_cast<std::int64_t>(*exit->signal);
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A DataLoader worker was killed",
    .explanation =
        R"(What you see: "DataLoader worker (pid N) is killed by signal", or a rank that waits for a batch beside a zombie child.

Why: the out-of-memory killer ended it (SIGKILL), /dev/shm was full (SIGBUS), or native code in the dataset crashed (SIGSEGV,
SIGABRT).

How ddpdoctor knows: from the signal in the zombie's exit status or in the agent's record, or from torch's message in the logs.

Fix: it depends on the signal. Fewer workers need less memory and less /dev/shm:
    - DataLoader(dataset, num_workers=16)
    + DataLoader(dataset, num_workers=4))",
    .detect = detect,
    .specificity = kPlaceOfCause,
};

}  // namespace ddpdoctor::detectors::dataloader_worker_killed
