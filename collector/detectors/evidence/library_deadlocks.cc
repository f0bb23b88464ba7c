// SPDX-License-Identifier: Apache-2.0
// Sources: CPython's concurrent/futures/process.py of 3.9 to 3.14 and loky's copy of it. gh-105829:
// submit() holds the shutdown lock while it writes to the wake-up pipe, and the thread that reads
// the pipe takes that lock first. gh-125451: the manager's thread holds it while it joins the
// thread that feeds the queue of calls, and that one takes it to report a call it cannot pickle.
#include "collector/detectors/evidence/library_deadlocks.h"

#include <array>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/reentered_locks.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using model::Thread;

/// Two functions of a library: a thread in one of them holds a lock while it waits for a thread
/// that is in the other.
struct LibraryPair {
  std::string_view file;
  std::string_view holder;    // holds the lock …
  std::string_view within;    // … while it waits in this function
  std::string_view waits_in;  // … of this file
  std::string_view wanter;    // its own line takes the lock
  std::string_view deed;      // what the holder waits for
  std::string_view other;     // who the wanter is for the holder
  std::string_view fix;
};

constexpr LibraryPair wakes_up(std::string_view file, std::string_view fix) {
  return {.file = file,
          .holder = "wakeup",
          .within = "_send",
          .waits_in = "multiprocessing/connection.py",
          .wanter = "wait_result_broken_or_wakeup",
          .deed = "writes to a pipe",
          .other = "its reader",
          .fix = fix};
}

constexpr std::array<LibraryPair, 3> kPairs = {{
    wakes_up("concurrent/futures/process.py",
             "Update Python (3.11.8, 3.12.2 or later), or submit fewer tasks at once."),
    wakes_up("loky/process_executor.py", "Update loky, or submit fewer tasks at once."),
    {.file = "concurrent/futures/process.py",
     .holder = "_join_executor_internals",
     .within = "join_thread",
     .waits_in = "multiprocessing/queues.py",
     .wanter = "_on_queue_feeder_error",
     .deed = "joins its queue's feeder",
     .other = "the feeder",
     .fix = "Update Python (3.12.8, 3.13.1 or later), or submit only tasks that can be pickled."},
}};
constexpr std::string_view kLock = "the executor's shutdown lock";

bool holds(const LibraryPair& pair, const Thread& thread) {
  return asleep(thread) && python_frame_in(thread, pair.file, {pair.holder}) != nullptr &&
         python_frame_in(thread, pair.waits_in, {pair.within}) != nullptr;
}

bool wants(const LibraryPair& pair, const Thread& thread) {
  const model::Frame* python = model::innermost_python(thread);
  return python != nullptr && asleep(thread) && !waits_for_gil(thread) &&
         python == python_frame_in(thread, pair.file, {pair.wanter});
}

Suspect side_of(const graph::Examination& examination, const model::Process& process,
                const Thread& thread, Confidence still, std::string deed) {
  Suspect suspect = suspect_in(examination, process, &thread);
  suspect.confidence = still;
  suspect.note = fmt::format("{} {}", thread_name(thread), deed);
  suspect.evidence =
      fmt::format("{} of {} {}", full_thread_name(thread), named(process.pid, "the process"), deed);
  return suspect;
}

}  // namespace

Findings library_deadlocks(const graph::Examination& examination, const model::Process& process,
                           Confidence still) {
  if (auto own = waits_for_own_lock(examination, process, still)) {
    return {std::move(*own)};
  }
  for (const LibraryPair& pair : kPairs) {
    const Thread* holder = nullptr;
    const Thread* wanter = nullptr;
    for (const Thread& thread : process.threads) {
      holder = holds(pair, thread) ? &thread : holder;
      wanter = wants(pair, thread) ? &thread : wanter;
    }
    if (holder == nullptr || wanter == nullptr || !alive(process)) {
      continue;
    }
    const std::vector<Suspect> both = {
        side_of(examination, process, *holder, still,
                fmt::format("holds {} and waits in {}()", kLock, pair.holder)),
        side_of(examination, process, *wanter, still,
                fmt::format("waits for {} in {}()", kLock, pair.wanter))};
    Finding finding = accuse(examination, "lock-deadlock", both);
    finding.summary = fmt::format(
        "{} of {} holds {} and {} ({}); {}, {}, wants that lock", thread_name(*holder),
        process.rank ? who(both) : named(process.pid, "a process"), kLock, pair.deed,
        both.front().place.known() ? place(both.front().place) : std::string(pair.holder),
        pair.other, thread_name(*wanter));
    finding.fix = pair.fix;
    return {std::move(finding)};
  }
  return {};
}

}  // namespace ddpdoctor::detectors
