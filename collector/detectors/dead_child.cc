// SPDX-License-Identifier: Apache-2.0
// dead-child: a rank waits for data or a file from a process that it started. That process was
// killed, failed, or finished too early, and no other process holds the other end of the pipe.
#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/abandoned.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/ended_children.h"
#include "collector/detectors/evidence/listed_states.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::dead_child {
namespace {

constexpr std::string_view kKind = "dead-child";
constexpr int kReasonOfDeadlock =
    37;  // above detectors that report only the deadlock, below those that know the library
constexpr std::size_t kLongestException = 120;

/// A rank and the ended child that it waits for.
struct Orphaned {
  const graph::Standing* standing = nullptr;
  EndedChild child;
  Confidence confidence = Confidence::kPossible;
  bool polls = false;  // checks repeatedly for the result of the child
};

bool ended_unasked(const EndedChild& child) {
  constexpr int kTerminated = 15;  // SIGTERM: a program stops its own children with it
  return child.failed() && child.exit.signal != kTerminated;
}

/// Workers of a DataLoader have detectors of their own.
bool is_in_data_loader(const model::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
    return frame.file.find("torch/utils/data/") != std::string::npos;
  });
}

/// The rank sleeps in a loop that checks a condition.
bool polls_in_vain(const model::JobModel& job, const graph::Standing& standing) {
  return standing.activity == graph::Activity::kSleeping && !standing.on_cpu && !standing.moved &&
         polls(job, *standing.thread);
}

/// If children of other ranks failed too, but those ranks continued, the failed child is not the
/// reason: all ranks tried something optional, such as a missing program.
bool failed_here_only(const graph::Examination& examination, const graph::Standing& standing) {
  return std::none_of(
      examination.standings.begin(), examination.standings.end(), [&](const auto& other) {
        const auto children = other.process == nullptr || other.rank == standing.rank
                                  ? std::vector<EndedChild>{}
                                  : ended_children(examination.job, *other.process);
        return std::any_of(children.begin(), children.end(), ended_unasked) &&
               other.waits_for_ranks();
      });
}

std::optional<Orphaned> orphaned(const graph::Examination& examination,
                                 const BlockedThreads& blocked, const graph::Standing& standing,
                                 Confidence still) {
  if (standing.process == nullptr || standing.thread == nullptr || !alive(*standing.process) ||
      standing.waits_for_ranks() || standing.on_cpu || is_in_data_loader(*standing.thread)) {
    return std::nullopt;
  }
  const Hope hope = hope_of(blocked, *standing.thread);
  const bool polls = hope == Hope::kGoesOn && polls_in_vain(examination.job, standing);
  if (hope == Hope::kGoesOn && !polls) {
    return std::nullopt;
  }
  const auto children = ended_children(examination.job, *standing.process);
  if (children.empty() || (hope != Hope::kAbandoned && !ended_unasked(children.front()))) {
    return std::nullopt;  // another process may still write, and this child exited normally
  }
  const EndedChild& child = children.front();
  const bool sure = still == Confidence::kLikely;
  if (polls && !failed_here_only(examination, standing)) {
    return std::nullopt;
  }
  return Orphaned{.standing = &standing,
                  .child = child,
                  .confidence = sure && hope == Hope::kAbandoned && ended_unasked(child)
                                    ? Confidence::kCertain
                                    : still,
                  .polls = polls};
}

std::string exception_of(const EndedChild& child) {
  return child.traceback
             ? base::elide(base::printable(child.traceback->exception), kLongestException)
             : std::string();
}

Suspect suspect_of(const graph::Examination& examination, const Orphaned& one) {
  Suspect suspect = suspect_in(examination, *one.standing->process, one.standing->thread);
  const std::string ended = how_it_ended(one.child.exit);
  const std::string_view was = one.child.exit.signal ? "was " : "";
  suspect.rank = one.standing->rank;
  suspect.place = suspect.place.known() ? suspect.place : one.standing->user;
  suspect.confidence = one.confidence;
  suspect.note = fmt::format("rank {} is {} here", one.standing->rank,
                             one.polls ? "sleeping between two checks" : "waiting for it");
  const std::string exception = exception_of(one.child);
  suspect.evidence = fmt::format("{} {}{}{}{}", name_of(one.child), was, ended,
                                 exception.empty() ? "" : ": ", exception);
  return suspect;
}

/// Adds the lines where the child failed and where it was started.
void add_places(const Orphaned& one, Finding& finding) {
  std::vector<Location> places;
  const model::RankSet rank{one.standing->rank};
  if (one.child.traceback && one.child.traceback->place.known()) {
    places.push_back(location(one.child.traceback->place, rank,
                              fmt::format("process {} raised here", one.child.pid)));
  }
  if (one.child.born) {
    places.push_back(
        location(*one.child.born, rank, fmt::format("process {} was started here", one.child.pid)));
  }
  finding.locations.insert(
      finding.locations.begin() + std::min<std::ptrdiff_t>(1, std::ssize(finding.locations)),
      places.begin(), places.end());
}

std::string fix_of(const Orphaned& one) {
  const std::string child = fmt::format("process {}", one.child.pid);
  if (one.child.exit.signal) {
    return fmt::format(
        "Check what killed {} (dmesg shows the out-of-memory killer). Wait with a timeout, and "
        "check is_alive() or poll() of the child each time.",
        child);
  }
  if (one.child.failed()) {
    return fmt::format(
        "Fix the error of {}{}. Send an end mark from its `finally`, and wait for it with a "
        "timeout "
        "that checks whether it is alive.",
        child,
        one.child.traceback && one.child.traceback->place.known()
            ? fmt::format(" ({})", line_of(one.child.traceback->place))
            : std::string());
  }
  return fmt::format(
      "Send an end mark from {} when it is done, and stop reading at that mark: it sent less than "
      "is read here.",
      child);
}

Finding finding_of(const graph::Examination& examination, const Orphaned& one) {
  Finding finding = accuse(examination, kKind, {suspect_of(examination, one)});
  const std::string exception = exception_of(one.child);
  finding.summary = fmt::format(
      "{} is waiting{} for its child process {}, which {}{}{}{}", said(finding.culprits),
      placed(one.standing->user), one.child.pid, one.child.exit.signal ? "was " : "has ",
      one.child.exit.signal   ? how_it_ended(one.child.exit)
      : one.child.exit.status ? how_it_ended(one.child.exit)
                              : "ended",
      exception.empty() ? std::string()
                        : fmt::format(" ({})", exception.substr(0, exception.find(':'))),
      and_who_waits(finding));
  add_places(one, finding);
  finding.fix = fix_of(one);
  finding.details["child_pid"] = std::int64_t{one.child.pid};
  return finding;
}

Findings detect(const graph::Examination& examination) {
  const auto still = stuck(examination);
  if (!still) {
    return {};
  }
  const BlockedThreads blocked = blocked_threads(examination);
  Findings findings = listed_zombies(examination, kKind);
  for (const graph::Standing& standing : examination.standings) {
    if (const auto one = orphaned(examination, blocked, standing, *still)) {
      findings.push_back(finding_of(examination, *one));
    }
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A rank waits for a child process that has ended",
    .explanation =
        R"(What you see: one rank is in get(), recv() or a loop that waits for a file; the others wait for that rank. Its producer
process has exited.

Why: a queue or pipe does not show its reader that the writer has exited: the reader has the write end open, too. A child that was
killed, raised, or sent less than its parent reads, leaves the parent waiting forever.

How ddpdoctor knows: the kernel shows which pipe or semaphore the rank is waiting on, and that no other process has its other end
open; the status or signal of a child of the rank shows that it has ended. A table of processes alone (`ps`) shows children that are
<defunct> while the program that started them is still there.

Fix:
    - batch = queue.get()
    + while True:
    +     try:
    +         batch = queue.get(timeout=5)
    +         break
    +     except queue_module.Empty:
    +         if not producer.is_alive():
    +             raise RuntimeError(f"the producer ended: {producer.exitcode}"))",
    .detect = detect,
    .specificity = kReasonOfDeadlock,
};

}  // namespace ddpdoctor::detectors::dead_child
