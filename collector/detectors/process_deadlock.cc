// SPDX-License-Identifier: Apache-2.0
// process-deadlock: processes wait for each other over kernel objects (pipes, sockets, semaphores,
// file locks, exits of children), and every process that could end a wait waits itself. No
// knowledge of libraries is needed: the kernel shows which process waits for what, and which has
// the other end.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/lost_semaphore.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/traced_calls.h"
#include "collector/detectors/evidence/waiting_circle.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/graph/knots.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::process_deadlock {
namespace {

constexpr std::string_view kKind = "process-deadlock";
constexpr int kMechanismOfProcesses =
    35;  // more specific than the symptom, less than a known library

constexpr std::size_t kLongestCallShown = 160;

bool any_of_kind(const WaitingCircle& circle, std::string_view kind,
                 std::string_view operation = {}) {
  return std::any_of(circle.members.begin(), circle.members.end(), [&](const auto* member) {
    return object_kind(*member) == kind &&
           (operation.empty() || member->object->text("operation") == operation);
  });
}

bool any_blocked_by(const WaitingCircle& circle, Blockage blockage) {
  return std::any_of(circle.members.begin(), circle.members.end(),
                     [blockage](const auto* member) { return member->blockage == blockage; });
}

const BlockedThread& after(const WaitingCircle& circle, std::size_t at) {
  return *circle.members[(at + 1) % circle.members.size()];
}

/// What `at` waits for: a process exits as a whole.
std::string awaited(const WaitingCircle& circle, std::size_t at) {
  const BlockedThread& next = after(circle, at);
  return object_kind(*circle.members[at]) == "process" ? process_name(*next.process)
                                                       : member_name(next, circle);
}

/// The line to change: of a process that joins before it reads, that calls another process while it
/// holds a lock, or that takes a file lock.
bool is_to_blame(const WaitingCircle& circle, std::size_t at, bool plainly) {
  const std::size_t size = circle.members.size();
  const BlockedThread& before = *circle.members[(at + size - 1) % size];
  return plainly ? object_kind(*circle.members[at]) == "process" ||
                       before.blockage == Blockage::kPrivateLock
                 : object_kind(*circle.members[at]) == "file-lock";
}

void put_guilty_first(WaitingCircle& circle) {
  auto& members = circle.members;
  for (const bool plainly : {true, false}) {
    for (std::size_t i = 0; i < members.size() && !circle.lost; ++i) {
      if (is_to_blame(circle, i, plainly)) {
        std::rotate(members.begin(), members.begin() + static_cast<std::ptrdiff_t>(i),
                    members.end());
        return;
      }
    }
  }
}

std::string queued_words(const BlockedThread& member) {
  const auto bytes =
      member.object == nullptr ? std::nullopt : member.object->number("queued_bytes");
  return bytes && *bytes > 0 ? fmt::format(" ({} bytes are queued)", *bytes) : std::string();
}

std::vector<Suspect> suspects_of(const graph::Examination& examination, const WaitingCircle& circle,
                                 Confidence confidence) {
  std::vector<Suspect> out;
  for (std::size_t i = 0; i < circle.members.size(); ++i) {
    const BlockedThread& member = *circle.members[i];
    const std::string words =
        circle.lost ? "waiting for a semaphore" : waiting_words(member, awaited(circle, i));
    Suspect suspect = suspect_in(examination, *member.process, member.thread);
    const std::string name = member_name(member, circle);
    suspect.confidence = confidence;
    suspect.note = fmt::format("{} is {}", name, words);
    suspect.evidence =
        fmt::format("{} has been {} since the first snapshot{}", name, words, queued_words(member));
    out.push_back(std::move(suspect));
  }
  return out;
}

std::string lost_summary(const WaitingCircle& circle) {
  const BlockedThread& first = *circle.members.front();
  const std::size_t count = circle.members.size();
  const model::Frame* user = nullptr;
  for (const model::Frame* frame : model::user_frames(*first.thread)) {
    user = user == nullptr ? frame : user;
  }
  const std::string where = user == nullptr
                                ? std::string()
                                : fmt::format(" ({}:{})", base::file_name(user->file), user->line);
  return count == 1 ? fmt::format(
                          "{} is waiting for a semaphore{}; no process is left that can release it",
                          member_name(first, circle), where)
                    : fmt::format(
                          "{} processes are waiting for one semaphore{}; no process is left that "
                          "can release it",
                          count, where);
}

std::string summary_of(const WaitingCircle& circle) {
  if (circle.lost) {
    return lost_summary(circle);
  }
  const auto sentence = [&circle](std::size_t at) {
    return fmt::format("{} is {}", member_name(*circle.members[at], circle),
                       waiting_words(*circle.members[at], awaited(circle, at)));
  };
  if (circle.members.size() == 2) {
    return fmt::format("{}; {}", sentence(0), sentence(1));
  }
  return fmt::format("{} threads wait for each other in a circle; {}", circle.members.size(),
                     sentence(0));
}

std::string fix_of(const WaitingCircle& circle) {
  if (circle.lost) {
    return std::string(kReleaseSemaphore);
  }
  const bool writes =
      any_of_kind(circle, "pipe", "write") || any_of_kind(circle, "socket", "write");
  if (any_of_kind(circle, "process") && writes) {
    return "Read the pipe or queue until it is empty before you join the process that writes into "
           "it.";
  }
  if (any_blocked_by(circle, Blockage::kRpc)) {
    return any_blocked_by(circle, Blockage::kPrivateLock)
               ? "Release the lock before you send the RPC: its answer needs that lock."
               : "Send the RPC using rpc_async and wait outside the handler.";
  }
  if (any_of_kind(circle, "file-lock")) {
    const bool only = std::all_of(circle.members.begin(), circle.members.end(),
                                  [](const auto* one) { return object_kind(*one) == "file-lock"; });
    return only ? "Take the locks on these files in the same order in every process."
                : "Unlock the file before you wait for a process that needs its lock.";
  }
  if (writes) {
    return "Receive on one side before it sends, or send from a thread: a pipe or socket holds "
           "only its buffer.";
  }
  return "Change one of these waits so that it happens after the other process was served; or give "
         "it a timeout that raises.";
}

/// None of them has moved since the first of two snapshots; with a single snapshot, the waiting
/// time decides.
Confidence how_sure(const graph::Examination& examination, Confidence still) {
  const bool twice = examination.job.observations.size() > 1;
  return twice && still == Confidence::kLikely ? Confidence::kCertain : still;
}

Finding finding_of(const graph::Examination& examination, const WaitingCircle& circle,
                   Confidence confidence) {
  Finding finding = accuse(examination, kKind, suspects_of(examination, circle, confidence));
  finding.summary = summary_of(circle);
  finding.fix = fix_of(circle);
  std::set<std::string> objects;
  for (const BlockedThread* member : circle.members) {
    const auto object = member->object == nullptr ? std::nullopt : member->object->text("object");
    if (object && member->blockage == Blockage::kObject) {
      objects.insert(*object);
    }
  }
  finding.details["objects"] = std::vector<std::string>(objects.begin(), objects.end());
  if (circle.all > circle.members.size()) {
    finding.evidence.push_back(
        {.rank = {},
         .text = fmt::format("{} threads in all wait for these and for nothing else; each could be "
                             "woken only by another of them",
                             circle.all)});
  }
  return finding;
}

/// "write(1" of a child whose parent waits for its exit: a full pipe that the parent does not read.
Findings traced_by_strace(const model::JobModel& job) {
  const std::vector<TracedCall> calls = unfinished_calls(job);
  Findings out;
  for (const TracedCall& parent : calls) {
    for (const TracedCall& child : calls) {
      const int file = child.first_number();
      if (!waits_for_exit_of(parent, child.pid) || (file != 1 && file != 2) ||
          (child.name != "write" && child.name != "writev")) {
        continue;
      }
      Finding finding;
      finding.kind = kKind;
      finding.confidence = Confidence::kPossible;
      finding.summary = fmt::format(
          "process {} is waiting for its child {} to exit; the child is blocked writing to "
          "its {}, a pipe that is not read",
          parent.pid, child.pid, file == 1 ? "stdout" : "stderr");
      for (const TracedCall* const one : {&parent, &child}) {
        finding.evidence.push_back(
            {.rank = {},
             .text = fmt::format("strace: process {} does not return from {}", one->pid,
                                 base::elide(base::printable(one->line), kLongestCallShown))});
      }
      finding.fix =
          "Read the child's output to its end before you wait for its exit (communicate()). Or "
          "send it "
          "to a file or DEVNULL: a pipe holds 64 KiB.";
      finding.details["pid"] = static_cast<std::int64_t>(parent.pid);
      out.push_back(std::move(finding));
    }
  }
  return out;
}

Findings detect(const graph::Examination& examination) {
  if (Findings traced = traced_by_strace(examination.job); !traced.empty()) {
    return traced;
  }
  const auto still = stuck(examination);
  if (!still) {
    return {};
  }
  const BlockedThreads blocked = blocked_threads(examination);
  Findings findings;
  for (const std::vector<std::size_t>& knot : graph::knots(blocked.nodes)) {
    // dataloader-worker-stuck reports workers that wait for a lost semaphore.
    if (auto circle = circle_of(blocked, knot);
        circle && !is_lost_by_workers(examination.job, *circle)) {
      put_guilty_first(*circle);
      findings.push_back(finding_of(examination, *circle, how_sure(examination, *still)));
    }
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "Processes wait for each other over a pipe, lock or semaphore",
    .explanation =
        R"(What you see: the job makes no progress, no rank is missing, and no error is printed. Workers, helpers or servers of the
job sleep.

Why: each process waits for something that only another one of them can do: read a full pipe, release a semaphore or the lock on a
file, exit, answer an RPC. An exception between acquire and release has the same effect: the semaphore loses a slot, and every process
that could release one is waiting for it.

How ddpdoctor knows: the kernel shows which pipe, socket, semaphore, file or child each thread is waiting on, and which processes have
the other end open, map the semaphore or hold the lock. If each of these processes sleeps as well, without a timeout, none can ever
continue. If one of them may still act (it runs, sleeps for a limited time, or waits for something unknown), ddpdoctor reports
nothing.

Fix:
    - slots.acquire()
    - image = decode(path)
    - slots.release()
    + with slots:
    +     image = decode(path)
or receive before you send, read a queue before you join its writer, take locks in one order.)",
    .detect = detect,
    .specificity = kMechanismOfProcesses,
};

}  // namespace ddpdoctor::detectors::process_deadlock
