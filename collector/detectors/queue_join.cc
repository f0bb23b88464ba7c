// SPDX-License-Identifier: Apache-2.0
// queue-join: a process joins its child before it has emptied the queue that the child still has to
// flush. A pipe holds 64 KB; the child's feeder thread waits for a reader, and the reader waits for
// the child to exit.
#include <algorithm>

#include <fmt/format.h>

#include "collector/detectors/detector.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
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
    .title = "A child is joined before its queue is read",
    .explanation =
        R"(What you see: a rank is in Process.join; its child does not exit although its work is finished. With little data it works.

Why: multiprocessing.Queue writes through a pipe of 64 KB. A process ends only after its feeder thread has written everything, and the
only reader is the process that waits in join.

How ddpdoctor knows: the parent is in join, and the child is in its clean-up while its feeder thread is in a write.

Fix:
    - child.join()
    - result = queue.get()
    + result = queue.get()
    + child.join())",
    .detect = detect,
    .specificity = kMechanism,
};

}  // namespace ddpdoctor::detectors::queue_join
