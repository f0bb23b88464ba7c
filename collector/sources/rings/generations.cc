// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/rings/generations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace ddpdoctor::sources {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

/// The time of the first event of a process; infinite if there is none.
double first_seen(const Recording& recording) {
  double first = std::numeric_limits<double>::infinity();
  for (const RecordedCall& call : recording.calls) {
    first = call.time > 0 ? std::min(first, call.time) : first;
  }
  for (const RecordedEvent& event : recording.events) {
    first = event.time > 0 ? std::min(first, event.time) : first;
  }
  return recording.exit ? std::min(first, recording.exit->time) : first;
}

/// When each process ended, according to itself or its parent.
std::map<pid_t, double> ends(const std::vector<Recording>& recordings) {
  std::map<pid_t, double> found;
  for (const Recording& recording : recordings) {
    if (recording.exit && recording.exit->kind != "exec") {
      found[recording.pid] = recording.exit->time;
    }
  }
  for (const Recording& recording : recordings) {
    for (const RecordedEvent& event : recording.events) {
      if (event.kind == "child-exit" && event.count > 0) {
        found.emplace(static_cast<pid_t>(event.count), event.time);
      }
    }
  }
  return found;
}

/// It only ended successfully: a rank without work, or a helper that ran before the rank. Neither
/// is a previous attempt of the job.
bool only_ended(const Recording& recording) {
  return recording.calls.empty() && recording.groups.empty() && recording.exit &&
         recording.exit->kind != "abort" && recording.exit->value == 0;
}

/// Ranks that a launcher started. A program that a rank runs inherits its RANK and does not count.
std::vector<const Recording*> started_ranks(const std::vector<Recording>& recordings) {
  std::set<pid_t> ranks;
  for (const Recording& recording : recordings) {
    if (recording.rank) {
      ranks.insert(recording.pid);
    }
  }
  std::vector<const Recording*> out;
  for (const Recording& recording : recordings) {
    if (recording.rank && !recording.forked && !ranks.contains(recording.ppid) &&
        !only_ended(recording)) {
      out.push_back(&recording);
    }
  }
  std::sort(out.begin(), out.end(),
            [](const Recording* a, const Recording* b) { return a->start_ticks < b->start_ticks; });
  return out;
}

}  // namespace

void mark_superseded(std::vector<Recording>& recordings) {
  const std::map<pid_t, double> ended = ends(recordings);
  std::map<int, double> first_end;  // of the rank's processes so far
  double began_again = kNever;  // the latest time at which a rank that had ended was started again
  for (const Recording* recording : started_ranks(recordings)) {
    const double first = first_seen(*recording);
    const auto before = first_end.find(*recording->rank);
    if (before != first_end.end() && before->second <= first && std::isfinite(first)) {
      began_again = std::max(began_again, first);
    }
    if (const auto end = ended.find(recording->pid); end != ended.end()) {
      first_end.emplace(*recording->rank, end->second);
    }
  }
  for (Recording& recording : recordings) {
    const auto end = ended.find(recording.pid);
    recording.superseded = recording.rank && end != ended.end() && end->second <= began_again;
  }
}

}  // namespace ddpdoctor::sources
