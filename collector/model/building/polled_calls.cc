// SPDX-License-Identifier: Apache-2.0
#include "collector/model/building/polled_calls.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "collector/model/progress.h"

namespace ddpdoctor::model {
namespace {

using sources::RecordedCall;
using sources::RecordedGroup;
using sources::Recording;

// Seconds; without an earlier snapshot, an older query proves nothing.
constexpr double kJustNow = 1;
constexpr std::size_t kLooks = 2;

/// The call that the group's communicator still works on; null if it has ended since.
const RecordedCall* in_progress(const Recording& recording, std::size_t group) {
  const auto open =
      std::find_if(recording.calls.begin(), recording.calls.end(), [group](auto& one) {
        return one.group == group && one.in_progress &&
               one.state == sources::RecordedState::kEnqueued;
      });
  return open == recording.calls.end() ? nullptr : &*open;
}

/// True if the thread is in the snapshot and the snapshot was taken after the call.
bool mark(Observation& look, const Recording& recording, const RecordedGroup& group,
          const RecordedCall& call) {
  if (call.time > look.time) {
    return false;
  }
  for (Process& process : look.processes) {
    for (Thread& thread : process.threads) {
      if (process.pid == recording.pid && thread.tid == group.asked_by) {
        thread.waits_on = WaitsOn{.kind = kPolledCall,
                                  .target = group.name,
                                  .detail = fmt::format("{} #{}", call.operation, call.sequence)};
        return true;
      }
    }
  }
  return false;
}

}  // namespace

bool some_call_is_polled(const std::vector<Recording>& recordings) {
  return std::any_of(recordings.begin(), recordings.end(), [](const Recording& recording) {
    return std::any_of(recording.groups.begin(), recording.groups.end(),
                       [](const RecordedGroup& group) { return group.asked > 0; });
  });
}

void mark_polled_calls(JobModel& job, const std::vector<Recording>& recordings) {
  if (job.observations.empty()) {
    return;
  }
  const std::size_t count = std::min(kLooks, job.observations.size());
  const auto looks = job.observations.end() - static_cast<std::ptrdiff_t>(count);
  const double since = count == kLooks ? looks->time : looks->time - kJustNow;
  bool marked = false;
  for (const Recording& recording : recordings) {
    for (std::size_t i = 0; i < recording.groups.size(); ++i) {
      const RecordedGroup& group = recording.groups[i];
      const RecordedCall* call = group.asked < since ? nullptr : in_progress(recording, i);
      for (auto look = looks; call != nullptr && look != job.observations.end(); ++look) {
        marked = mark(*look, recording, group, *call) || marked;
      }
    }
  }
  if (marked) {
    const Movement seen = movement(job);
    job.progress = seen.progress;
    job.seconds_without_progress = seen.seconds_without_progress;
  }
}

}  // namespace ddpdoctor::model
