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
#include "collector/detectors/evidence/signs.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using model::Thread;

struct KnownPair {
  std::string_view file;
  std::string_view holder;  // holds the lock and waits in the function `until`
  std::string_view until;
  std::string_view until_file;
  std::string_view wanter;  // its own line takes the lock
  std::string_view lock;
  std::string_view fix;
};

constexpr std::array<KnownPair, 2> kPairs = {{
    {.file = "concurrent/futures/process.py",
     .holder = "wakeup",
     .until = "_send",
     .until_file = "multiprocessing/connection.py",
     .wanter = "wait_result_broken_or_wakeup",
     .lock = "the executor's shutdown lock",
     .fix = "Update Python (3.11.8, 3.12.2 or later), or submit fewer tasks at once."},
    {.file = "loky/process_executor.py",
     .holder = "wakeup",
     .until = "_send",
     .until_file = "multiprocessing/connection.py",
     .wanter = "wait_result_broken_or_wakeup",
     .lock = "the executor's shutdown lock",
     .fix = "Update loky, or submit fewer tasks at once."},
}};

bool holds(const KnownPair& pair, const Thread& thread) {
  return asleep(thread) && python_frame_in(thread, pair.file, {pair.holder}) != nullptr &&
         python_frame_in(thread, pair.until_file, {pair.until}) != nullptr;
}

bool wants(const KnownPair& pair, const Thread& thread) {
  const model::Frame* python = model::innermost_python(thread);
  return python != nullptr && asleep(thread) && !waits_for_gil(thread) &&
         python == python_frame_in(thread, pair.file, {pair.wanter});
}

Suspect side_of_pair(const graph::Examination& examination, const model::Process& process,
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
  for (const KnownPair& pair : kPairs) {
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
        side_of_pair(examination, process, *holder, still,
                     fmt::format("holds {} and waits in {}()", pair.lock, pair.holder)),
        side_of_pair(examination, process, *wanter, still,
                     fmt::format("waits for {} in {}()", pair.lock, pair.wanter))};
    Finding finding = accuse(examination, "lock-deadlock", both);
    finding.summary = fmt::format(
        "{} of {} holds {} and writes to a pipe ({}); its reader, {}, wants that lock",
        thread_name(*holder), process.rank ? who(both) : named(process.pid, "a process"), pair.lock,
        both.front().place.known() ? place(both.front().place) : std::string(pair.holder),
        thread_name(*wanter));
    finding.fix = pair.fix;
    return {std::move(finding)};
  }
  return {};
}

}  // namespace ddpdoctor::detectors
