// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/waited_for.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/python_waits.h"
#include "collector/model/questions.h"
#include "collector/program/libraries/libraries.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/lock_release.h"

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;

constexpr std::size_t kLongestHeader = 80;

/// A waiting method of a standard-library class; the first match wins.
struct Primitive {
  std::string_view file;
  std::string_view function;  // end of its name: "Event.wait"
  std::string_view doing;
  std::string_view advice;
};

constexpr std::string_view kSetIt =
    "Set this Event on every path, also after an exception in the thread that sets it. Pass a "
    "timeout to wait().";
constexpr std::string_view kNotifyIt =
    "Check the thread that should notify this Condition: it may have failed, or notified before "
    "the wait. Pass a timeout to wait().";
constexpr std::string_view kPutIt =
    "Check the thread or process that should put an item into this queue: it may have failed. Pass "
    "a timeout to get().";
constexpr std::string_view kTakeIt =
    "Check the thread or process that should read this full queue: it may have failed. Pass a "
    "timeout to put().";
constexpr std::string_view kMarkIt =
    "Call task_done() once for each item, in a `finally`: a `continue` or an exception skips it. "
    "Check that the reading thread is alive.";
constexpr std::string_view kMeet =
    "Check the thread that has not reached this Barrier: it may have failed. Pass a timeout to "
    "wait().";
constexpr std::string_view kUseWith =
    "Use `with` wherever this lock is acquired, or acquire(timeout=…): which thread holds it is "
    "unknown.";
constexpr std::string_view kRelease =
    "Call release() in `finally` after every acquire() of this Semaphore, and pass a timeout to "
    "acquire(): no record shows who took it.";
constexpr std::string_view kResult =
    "Check why the task of this Future does not finish, and call result(timeout=…).";

constexpr std::array<Primitive, 14> kPrimitives = {{
    {"/threading.py", "Event.wait", "waiting for a threading.Event to be set", kSetIt},
    {"/threading.py", "Barrier.wait", "waiting at a threading.Barrier", kMeet},
    {"/threading.py", "Semaphore.acquire", "waiting for a threading.Semaphore", kRelease},
    {"/threading.py", "Semaphore.__enter__", "waiting for a threading.Semaphore", kRelease},
    {"/queue.py", "get", "waiting for an item of a queue", kPutIt},
    {"/queue.py", "put", "waiting for room in a full queue", kTakeIt},
    {"/queue.py", "join", "waiting until every item of a queue is marked by task_done()", kMarkIt},
    {"multiprocessing/queues.py", "get", "waiting for an item of a multiprocessing queue", kPutIt},
    {"multiprocessing/queues.py", "put", "waiting for room in a full multiprocessing queue",
     kTakeIt},
    {"concurrent/futures/_base.py", "result", "waiting for the result of a Future", kResult},
    {"multiprocessing/synchronize.py", "Event.wait",
     "waiting for a multiprocessing Event to be set", kSetIt},
    {"multiprocessing/synchronize.py", "Condition.wait", "waiting for a multiprocessing Condition",
     kNotifyIt},
    {"/threading.py", "Condition.wait", "waiting for a threading.Condition", kNotifyIt},
    {"/threading.py", "wait", "waiting for a threading.Event or Condition", kNotifyIt},
}};

bool is_at(const model::Frame& frame, const Primitive& primitive) {
  if (frame.language != model::Language::kPython || !frame.file.ends_with(primitive.file) ||
      !frame.function.ends_with(primitive.function)) {
    return false;
  }
  // Before 3.11, function names have no class: then only the last row matches "wait".
  const std::size_t before = frame.function.size() - primitive.function.size();
  return before == 0 || frame.function[before - 1] == '.';
}

/// The outermost call below the user's line, because an Event waits in a Condition.
const Primitive* primitive_of(const model::Thread& thread) {
  const auto frames = called_by_user(thread);
  const auto row_of = [](const model::Frame& frame) {
    return std::find_if(kPrimitives.begin(), kPrimitives.end(),
                        [&frame](const Primitive& one) { return is_at(frame, one); });
  };
  // `with self.not_full:` of Queue.put waits for the queue's lock, not for room.
  const model::Frame* inner = model::innermost_python(thread);
  if (inner != nullptr && model::python_wait(*inner) == model::PythonWait::kLock &&
      row_of(*inner) == kPrimitives.end()) {
    return nullptr;
  }
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (const auto* const found = row_of(*frame); found != kPrimitives.end()) {
      return found;
    }
  }
  return nullptr;
}

std::optional<WaitedFor> end_of_process(const model::JobModel& job, const model::Thread& thread) {
  const model::WaitsOn* wait = waits_on(thread, "process");
  const auto pid = wait == nullptr ? std::nullopt : target_pid(*wait);
  const model::Process* process = pid ? model::process(job, *pid) : nullptr;
  if (process == nullptr || !alive(*process)) {
    return std::nullopt;
  }
  const std::string name = with_command(*process);
  return WaitedFor{
      .doing = fmt::format("waiting for {} to end", name),
      .advice = fmt::format("Check why {} does not exit, and wait for it with a timeout.", name)};
}

std::optional<WaitedFor> end_of_thread(const model::Process& process, const model::Thread& thread) {
  const pid_t tid = thread.waits_on ? target_thread(*thread.waits_on).value_or(0) : 0;
  const auto joined = std::find_if(process.threads.begin(), process.threads.end(),
                                   [tid](const model::Thread& one) { return one.tid == tid; });
  if (joined == process.threads.end() || &*joined == &thread) {
    return std::nullopt;
  }
  const model::Frame* user = own_user_frame(*joined);
  const std::string name = full_thread_name(*joined);
  return WaitedFor{
      .doing = fmt::format("waiting for {} to end", name),
      .advice = fmt::format("Check why {} {}, and join it with a timeout.", name,
                            user == nullptr ? std::string("does not finish")
                                            : fmt::format("stays in {} ({}:{})", user->function,
                                                          base::file_name(user->file), user->line)),
      .inside = user == nullptr ? model::CallSite{} : model::call_site(*user)};
}

/// `while not done(): time.sleep(1)`.
std::optional<WaitedFor> end_of_loop(const model::JobModel& job, const graph::Standing& standing) {
  const auto& lines = lines_of(job, standing.user.file);
  const auto loop = program::loop_around(lines, standing.user.line);
  if (!loop || loop->kind != program::BlockKind::kWhile || loop->line == standing.user.line) {
    return std::nullopt;
  }
  const std::string header = base::elide(loop->text, kLongestHeader);
  return WaitedFor{
      .doing = fmt::format("sleeping in the loop `{}`", header),
      .advice =
          asks_for(job, lines, *loop, program::Source::kFiles)
              ? fmt::format(
                    "Create the file that `{}` (line {}) checks for on a rank that does not "
                    "wait for this one. Add a timeout that raises.",
                    header, loop->line)
              : fmt::format("Add a timeout that raises to the loop `{}` (line {}), and check what "
                            "should end it.",
                            header, loop->line),
      .loop = {.file = standing.user.file, .line = loop->line, .function = standing.user.function}};
}

WaitedFor release_of_lock(const model::JobModel& job, const model::Thread& thread) {
  WaitedFor out{.doing = "waiting for a lock", .advice = std::string(kUseWith)};
  const model::Frame* at = model::innermost_python(thread);
  const auto locks = wanted_locks(job, thread);
  const auto left = locks.size() == 1 && at != nullptr
                        ? program::leaves_without_release(lines_of(job, at->file), job.sources,
                                                          {.line = at->line, .name = locks[0]})
                        : std::nullopt;
  if (left) {
    out.leaves = {.file = at->file, .line = *left, .function = {}};
    out.advice = fmt::format(
        "Release {} before line {} of {} leaves the function; `with {}` does so on every way out.",
        locks[0], *left, base::file_name(at->file), locks[0]);
  }
  return out;
}

}  // namespace

std::optional<WaitedFor> waited_for(const model::JobModel& job, const graph::Standing& standing) {
  if (standing.thread == nullptr || standing.process == nullptr) {
    return std::nullopt;
  }
  const model::Thread& thread = *standing.thread;
  switch (standing.activity) {
    case Activity::kSleeping:
      return end_of_loop(job, standing);
    case Activity::kJoin:
      if (auto process = end_of_process(job, thread)) {
        return process;
      }
      return end_of_thread(*standing.process, thread);
    case Activity::kLock:
    case Activity::kQueue: {
      const Primitive* primitive = primitive_of(thread);
      if (primitive != nullptr) {
        return WaitedFor{.doing = std::string(primitive->doing),
                         .advice = std::string(primitive->advice)};
      }
      return waits_for_private_lock(job, thread) ? std::optional(release_of_lock(job, thread))
                                                 : std::nullopt;
    }
    case Activity::kExit:
      return WaitedFor{.doing = "ending its program",
                       .advice = fmt::format(
                           "Look for an exception of rank {} (a finally block hides it), or for "
                           "fewer iterations than the others have: one of these led it to the end.",
                           standing.rank)};
    default:
      return std::nullopt;
  }
}

void add_places(const WaitedFor& waited, Finding& finding) {
  if (waited.loop.known()) {
    finding.locations.push_back(location(waited.loop, {}, "it is sleeping in this loop"));
  }
  if (waited.inside.known()) {
    finding.locations.push_back(location(waited.inside, {}, "the awaited thread is here"));
  }
  if (waited.leaves.known()) {
    finding.locations.push_back(location(waited.leaves, {}, "leaves with the lock taken"));
  }
}

}  // namespace ddpdoctor::detectors
