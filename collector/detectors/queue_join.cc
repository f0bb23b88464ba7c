// SPDX-License-Identifier: Apache-2.0
// queue-join: a process joins its child before it has emptied the queue that the child still has to
// flush. A pipe holds 64 KB; the child's feeder thread waits for a reader, and the reader waits for
// the child to exit. Or a thread is in Queue.join() while all readers wait for the next item.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/unmarked_items.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors::queue_join {
namespace {

constexpr std::string_view kKind = "queue-join";

bool joins_child(const model::Thread& thread) {
  return python_frame_in(thread, "multiprocessing/process.py", {"join"}) != nullptr ||
         python_frame_in(thread, "torch/multiprocessing/spawn.py", {"join"}) != nullptr;
}

/// join(timeout=1.0)
bool joins_for_a_while(const model::Thread& thread) {
  const model::Frame* join = python_frame_in(thread, "multiprocessing/process.py", {"join"});
  const auto timed = [](const auto& local) {
    return local.first == "timeout" && local.second != "None";
  };
  return (thread.waits_on && thread.waits_on->limit) ||
         (join != nullptr && std::any_of(join->locals.begin(), join->locals.end(), timed));
}

bool in_write(const model::Thread& thread) {
  return !thread.frames.empty() && thread.frames.front().language == model::Language::kNative &&
         thread.frames.front().function.find("write") != std::string::npos;
}

/// A feeder in the middle of a write, not one that waits for an item to send.
bool feeds_full_pipe(const model::Thread& thread) {
  return python_frame_in(thread, "multiprocessing/queues.py", {"_feed"}) != nullptr &&
         (python_frame_in(thread, "multiprocessing/connection.py", {"_send", "_send_bytes"}) !=
              nullptr ||
          thread.wchan.find("pipe_write") != std::string::npos ||
          waits_on(thread, "pipe") != nullptr || in_write(thread));
}

bool is_over(const model::Process& process) {
  const model::Thread* main = model::main_thread(process);
  return main != nullptr &&
         (python_frame_in(*main, "multiprocessing/util.py",
                          {"_exit_function", "_run_finalizers"}) != nullptr ||
          python_frame_in(*main, "multiprocessing/queues.py", {"_finalize_join"}) != nullptr);
}

std::optional<Suspect> joins_before_draining(const graph::Examination& examination,
                                             const model::Process& parent) {
  const model::Thread* main = model::main_thread(parent);
  const auto still = stuck(examination);
  if (!alive(parent) || main == nullptr || !still || !joins_child(*main)) {
    return std::nullopt;
  }
  for (const model::Process* child : children_of(examination.job, parent)) {
    const bool stuck_feeder =
        std::any_of(child->threads.begin(), child->threads.end(), feeds_full_pipe);
    const bool is_done = is_over(*child);
    if (!alive(*child) || !stuck_feeder) {
      continue;
    }
    Suspect suspect = suspect_in(examination, parent, main);
    suspect.confidence = is_done && still == Confidence::kLikely ? Confidence::kCertain : *still;
    if (joins_for_a_while(*main)) {
      suspect.confidence = Confidence::kPossible;  // it may read the queue afterwards
    }
    suspect.note = fmt::format("{} joins process {} here, whose queue is not empty", who({suspect}),
                               child->pid);
    suspect.evidence = fmt::format(
        "process {} joins its child {}; the child {}and the feeder thread of its queue is waiting "
        "in a write to a full pipe",
        parent.pid, child->pid, is_done ? "has finished its work " : "");
    return suspect;
  }
  return std::nullopt;
}

/// A thread of the process joins the feeder of its own queue, which writes to a full pipe.
std::optional<Finding> joins_own_feeder(const graph::Examination& examination,
                                        const model::Process& process) {
  const auto still = stuck(examination);
  const model::Thread* feeder = nullptr;
  const model::Thread* joiner = nullptr;
  bool broken = false;
  for (const model::Thread& thread : process.threads) {
    const bool joins = python_frame_in(thread, "multiprocessing/queues.py",
                                       {"_finalize_join", "join_thread"}) != nullptr;
    joiner = joins ? &thread : joiner;
    feeder = feeds_full_pipe(thread) ? &thread : feeder;
    broken = broken || python_frame_in(thread, "concurrent/futures/process.py",
                                       {"terminate_broken", "_terminate_broken"}) != nullptr;
  }
  // A main thread that waits at exit is an exit-hang; a pool whose workers live reads the queue.
  if (!still || !alive(process) || feeder == nullptr || joiner == nullptr || !broken) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, process, model::main_thread(process));
  suspect.confidence = *still;
  suspect.note = "the pool is shut down here";
  suspect.evidence = fmt::format(
      "{} of {} found that a worker of the ProcessPoolExecutor had died; it joins the feeder of "
      "the "
      "call queue, and {} is writing to that queue's pipe",
      thread_name(*joiner), named(process.pid, "the process"), thread_name(*feeder));
  Finding finding = accuse(examination, kKind, {suspect});
  finding.summary = fmt::format(
      "a worker of the process pool of {} died; the pool's shutdown waits for a queue whose pipe "
      "no process reads{}",
      who({suspect}), and_who_waits(finding));
  finding.fix =
      "Check why the worker died (its exit code, memory), submit smaller arguments, or update "
      "Python: newer versions close the pipe of a broken pool.";
  return finding;
}

/// Each reader of the queue waits for the next item, and join() for a task_done() that none of them
/// will call.
std::optional<Finding> joins_unmarked_queue(const graph::Examination& examination,
                                            const model::Process& process) {
  const auto still = stuck(examination);
  const auto found =
      still && alive(process) ? unmarked_items(examination.job, process) : std::nullopt;
  if (!found) {
    return std::nullopt;
  }
  Suspect suspect = suspect_in(examination, process, found->joiner);
  // Without a path that skips the mark, the item may be with a process that will mark it.
  const bool handed_on = !found->skipped.known() && !children_of(examination.job, process).empty();
  const bool proven = found->skipped.known() && *still == Confidence::kLikely;
  suspect.confidence = !found->same_queue || handed_on ? Confidence::kPossible
                       : proven                        ? Confidence::kCertain
                                                       : *still;
  suspect.note = fmt::format("{} joins the queue here", who({suspect}));
  const std::size_t readers = found->readers.size();
  suspect.evidence = fmt::format(
      "{} is in join() of a queue; {} {} for the next item", full_thread_name(*found->joiner),
      readers == 1 ? "the only thread that reads"
                   : fmt::format("the {} threads that read", readers),
      fmt::format("{} {}", found->same_queue ? "it" : "a queue", readers == 1 ? "waits" : "wait"));
  Finding finding = accuse(examination, kKind, {suspect});
  finding.locations.push_back(location(found->read, finding.culprits,
                                       found->readers.size() == 1
                                           ? "its reader waits here for an item"
                                           : "its readers wait here for an item"));
  if (found->skipped.known()) {
    finding.locations.push_back(
        location(found->skipped, finding.culprits, "here a path goes on without task_done()"));
  }
  finding.summary = fmt::format(
      "{} is in join() of a queue ({}) whose items were all taken; task_done() was not called for "
      "each of them{}",
      who({suspect}), place(suspect.place), and_who_waits(finding));
  finding.fix =
      found->skipped.known()
          ? fmt::format("Call task_done() once for each item, in a `finally`: {} skips it.",
                        line_of(found->skipped))
          : "Call task_done() once for each item, in a `finally`: a `continue` or an exception "
            "skips it.";
  return finding;
}

Findings detect(const graph::Examination& examination) {
  std::vector<Suspect> suspects;
  for (const model::Process* process : processes(examination.job)) {
    if (auto suspect = joins_before_draining(examination, *process)) {
      suspects.push_back(std::move(*suspect));
    }
  }
  Findings findings;
  for (const model::Process* process : processes(examination.job)) {
    if (auto finding = joins_own_feeder(examination, *process)) {
      findings.push_back(std::move(*finding));
    }
    if (auto finding = joins_unmarked_queue(examination, *process)) {
      findings.push_back(std::move(*finding));
    }
  }
  for (const auto& there : by_place(std::move(suspects))) {
    Finding finding = accuse(examination, kKind, there);
    finding.summary = fmt::format("{} joins a child process ({}) whose queue it has not emptied{}",
                                  who(there), place(there.front().place), and_who_waits(finding));
    finding.fix =
        "Read everything from the queue before join(); or call queue.cancel_join_thread() in the "
        "child if its data may be lost.";
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace

extern const Detector detector;
const Detector detector{
    .kind = kKind,
    .title = "A child is joined before its queue is read, or a queue with unmarked items",
    .explanation =
        R"(What you see: a rank is in Process.join; its child does not exit although its work is finished. With little data it works.

Why: multiprocessing.Queue writes through a pipe of 64 KB. A process ends only after its feeder thread has written everything, and the
only reader is the process that waits in join.

queue.Queue.join() waits until task_done() was called for each item. If a `continue` or an exception skips that call once, join()
never returns.

How ddpdoctor knows: the parent is in join, and the child is in its clean-up while its feeder thread is in a write. Of Queue.join():
each thread that reads this queue waits in get() for the next item, so none can still mark one.

Fix:
    - child.join()
    - result = queue.get()
    + result = queue.get()
    + child.join())",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::queue_join
