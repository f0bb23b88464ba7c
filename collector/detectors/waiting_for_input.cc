// SPDX-License-Identifier: Apache-2.0
// waiting-for-input: a rank waits for a person: a forgotten breakpoint(), input() on an unattended
// terminal, or a process stopped by a signal. The other ranks wait for it.
#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/listed_states.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/prompt_in_log.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::waiting_for_input {
namespace {

constexpr std::string_view kKind = "waiting-for-input";
constexpr int kReasonOfSilence = kPlaceOfCause + 1;  // why a pipe that a rank reads stays empty
constexpr std::string_view kDebugs = "is in the debugger";
constexpr std::string_view kReads = "reads from its terminal or standard input";

/// How a thread waits for a person; empty if it does not.
std::string_view asks_a_person(const model::JobModel& job, const model::Thread& thread) {
  if (python_frame_in(thread, "/pdb.py", {"interaction", "_cmdloop", "cmdloop"}) != nullptr ||
      python_frame_in(thread, "/cmd.py", {"cmdloop"}) != nullptr) {
    return kDebugs;
  }
  const bool reads = model::has_native_frame(thread, "PyOS_Readline") ||
                     model::has_native_frame(thread, "builtin_input") ||
                     waits_on(thread, "input") != nullptr;
  const model::Frame* innermost = innermost_python(thread);
  if (reads && innermost != nullptr) {
    return kReads;
  }
  // Stripped interpreters show no C names: uses the line itself and a read of an anonymous channel.
  const std::string_view line =
      innermost == nullptr
          ? std::string_view()
          : model::source_line(job, innermost->file, innermost->line).value_or(std::string_view());
  // A pipe with a writer in the job gets its input from a program, not from a person.
  const model::WaitsOn* pipe = waits_on(thread, "pipe");
  const bool fed = pipe != nullptr && target_pid(*pipe) && line.find("input(") == line.npos;
  const bool reads_channel = model::has_native_frame(thread, "read") ||
                             waits_on(thread, "pipe") != nullptr ||
                             waits_on(thread, "file") != nullptr;
  if (reads_channel && !fed &&
      (line.find("input(") != std::string_view::npos ||
       line.find("stdin") != std::string_view::npos)) {
    return "reads from its standard input";
  }
  return {};
}

/// A program that reads the standard input inherited from the job, not one to which a rank writes.
bool reads_the_jobs_input(const model::JobModel& job, const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  const model::WaitsOn* input = main == nullptr ? nullptr : waits_on(*main, "input");
  const auto writer = input == nullptr ? std::nullopt : target_pid(*input);
  const model::Process* peer = writer ? model::process(job, *writer) : nullptr;
  return input != nullptr && (peer == nullptr || !served_rank(job, *peer));
}

/// A program writes to its standard input, and the source does not ask a person.
bool is_fed(const model::JobModel& job, const model::Thread& thread) {
  const model::WaitsOn* input = waits_on(thread, "input");
  const model::WaitsOn* pipe = waits_on(thread, "pipe");
  const model::Frame* innermost = innermost_python(thread);
  const auto line = innermost == nullptr
                        ? std::nullopt
                        : model::source_line(job, innermost->file, innermost->line);
  const bool asks = model::has_native_frame(thread, "builtin_input") ||
                    asks_a_person(job, thread) == kDebugs ||
                    (line && line->find("input(") != std::string_view::npos);
  return !asks && (pipe != nullptr || (input != nullptr && target_pid(*input)));
}

/// A program that a rank started and waits for, and that asks a person instead of it.
bool asks_for_a_rank(const model::JobModel& job, const graph::Examination& examination,
                     const model::Process& process) {
  if (process.role != model::Role::kOther || forked_without_exec(job, process)) {
    return false;
  }
  const auto rank = served_rank(job, process);
  const graph::Standing* standing = rank ? examination.standing(*rank) : nullptr;
  if (standing == nullptr) {
    return false;
  }
  // It reads what the program prints, or waits for its end.
  const model::WaitsOn* pipe =
      standing->thread == nullptr ? nullptr : waits_on(*standing->thread, "pipe");
  return standing->activity == graph::Activity::kJoin ||
         (pipe != nullptr && target_pid(*pipe) == process.pid);
}

std::optional<Suspect> waits_for_person(const graph::Examination& examination,
                                        const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  const bool is_rank = process.role == model::Role::kRank;
  if (!alive(process) || main == nullptr ||
      !(is_rank || asks_for_a_rank(examination.job, examination, process))) {
    return std::nullopt;
  }
  const bool stopped = process.state == 'T';
  std::string_view doing = stopped ? "was stopped by a signal (SIGSTOP, SIGTTIN or Ctrl-Z)"
                                   : asks_a_person(examination.job, *main);
  if (doing.empty() && !is_rank && reads_the_jobs_input(examination.job, process)) {
    doing = kReads;
  }
  if (doing.empty()) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, process, main);
  if (!is_rank && suspect.rank) {
    suspect.place = examination.standing(*suspect.rank)->user;
  }
  // A person is never fast, but a program may write to standard input: only a debugger or a stop is
  // certain immediately.
  const auto still = stuck(examination);
  if (!still) {
    return std::nullopt;
  }
  suspect.confidence = still == Confidence::kLikely && !waiting_ranks(examination).empty()
                           ? Confidence::kCertain
                           : *still;
  if (doing != kDebugs) {
    suspect.confidence = unless_somebody_acts(examination, suspect.confidence);
  }
  suspect.note =
      is_rank || !suspect.rank
          ? fmt::format("{} {} here",
                        suspect.rank ? fmt::format("rank {}", *suspect.rank) : "the process", doing)
          : fmt::format("rank {} is waiting here for process {}, which {}", *suspect.rank,
                        process.pid, doing);
  suspect.evidence =
      fmt::format("{} {}{}", is_rank ? named(process.pid, "") : with_command(process), doing,
                  stopped ? ": its state is T" : "");
  return suspect;
}

/// "rank 1", or the program that asks in its place.
std::string who_asks(const std::vector<Suspect>& there) {
  const model::Process& process = *there.front().process;
  return process.role == model::Role::kRank
             ? who(there)
             : fmt::format("{} of {}", with_command(process), who(there));
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    if (auto suspect = waits_for_person(examination, *process)) {
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings findings = listed_stops(examination, kKind);
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    const bool stopped = there.front().process->state == 'T';
    finding.summary =
        fmt::format("{} {} ({}){}", who_asks(there),
                    stopped ? (finding.culprits.size() > 1 ? "were stopped" : "was stopped")
                    : is_fed(examination.job, *there.front().thread)
                        ? "is waiting for its standard input, a pipe,"
                        : "is waiting for a person",
                    place(there.front().place), and_who_waits(finding));
    finding.fix =
        stopped ? fmt::format("Run `kill -CONT {}`, then check what stopped it.",
                              there.front().process->pid)
        : is_fed(examination.job, *there.front().thread)
            ? "Write to the pipe that is its standard input, or close it; only one rank reads "
              "each line."
            : "Remove the breakpoint() or input() from code that several ranks run. To "
              "debug, start one rank only.";
    findings.push_back(std::move(finding));
  }
  return findings.empty() ? prompts_in_logs(examination, kKind) : findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A rank waits for a person",
    .explanation =
        R"(What you see: one rank is in pdb, in input(), or stopped (state T); the others wait for it in a collective. Under torchrun the
prompt is often not visible at all.

Why: a breakpoint() or a prompt was left in the code, or the job runs in the background and tried to use its terminal.

How ddpdoctor knows: from the frames of the debugger or of input(), a read of the terminal, or the process state (also in a table of `ps`).
Of a log alone: its last line is a question ([y/N], a password, a menu with numbers).

Fix:
    - breakpoint()
    + if not torch.distributed.is_initialized():
    +     breakpoint())",
    .detect = detect,
    .specificity = kReasonOfSilence,
};

}  // namespace ddpdoctor::detectors::waiting_for_input
