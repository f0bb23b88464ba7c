// SPDX-License-Identifier: Apache-2.0
// Sources: CPython's concurrent/futures/process.py of 3.9 to 3.12 (gh-105829) and loky's copy of
// it: submit() holds the shutdown lock while it writes to the wake-up pipe, and the thread that
// reads the pipe takes that lock first.
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

/// A library with this pair of functions.
struct PoolWithWakeup {
  std::string_view file;
  std::string_view fix;
};

constexpr std::array<PoolWithWakeup, 2> kPools = {{
    {.file = "concurrent/futures/process.py",
     .fix = "Update Python (3.11.8, 3.12.2 or later), or submit fewer tasks at once."},
    {.file = "loky/process_executor.py", .fix = "Update loky, or submit fewer tasks at once."},
}};
constexpr std::string_view kWakesUp = "wakeup";  // holds the lock while it sends
constexpr std::string_view kReads = "wait_result_broken_or_wakeup";  // its own line takes the lock
constexpr std::string_view kLock = "the executor's shutdown lock";

bool holds(const PoolWithWakeup& pool, const Thread& thread) {
  return asleep(thread) && python_frame_in(thread, pool.file, {kWakesUp}) != nullptr &&
         python_frame_in(thread, "multiprocessing/connection.py", {"_send"}) != nullptr;
}

bool wants(const PoolWithWakeup& pool, const Thread& thread) {
  const model::Frame* python = model::innermost_python(thread);
  return python != nullptr && asleep(thread) && !waits_for_gil(thread) &&
         python == python_frame_in(thread, pool.file, {kReads});
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
  for (const PoolWithWakeup& pool : kPools) {
    const Thread* holder = nullptr;
    const Thread* wanter = nullptr;
    for (const Thread& thread : process.threads) {
      holder = holds(pool, thread) ? &thread : holder;
      wanter = wants(pool, thread) ? &thread : wanter;
    }
    if (holder == nullptr || wanter == nullptr || !alive(process)) {
      continue;
    }
    const std::vector<Suspect> both = {
        side_of(examination, process, *holder, still,
                fmt::format("holds {} and waits in {}()", kLock, kWakesUp)),
        side_of(examination, process, *wanter, still,
                fmt::format("waits for {} in {}()", kLock, kReads))};
    Finding finding = accuse(examination, "lock-deadlock", both);
    finding.summary = fmt::format(
        "{} of {} holds {} and writes to a pipe ({}); its reader, {}, wants that lock",
        thread_name(*holder), process.rank ? who(both) : named(process.pid, "a process"), kLock,
        both.front().place.known() ? place(both.front().place) : std::string(kWakesUp),
        thread_name(*wanter));
    finding.fix = pool.fix;
    return {std::move(finding)};
  }
  return {};
}

}  // namespace ddpdoctor::detectors
