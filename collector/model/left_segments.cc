// SPDX-License-Identifier: Apache-2.0
#include "collector/model/left_segments.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::model {
namespace {

constexpr double kSecondsOld = 60;      // a newer segment may be in transfer between processes
constexpr std::size_t kMostPaths = 20;  // further paths are only counted
constexpr double kNearlyFull = 0.9;

/// The creator is known to have exited; other users are known only among this job's processes.
bool is_left(const Fact& segment) {
  return segment.flag("creator_alive") == false && segment.flag("in_use") == false &&
         segment.number("age_seconds").value_or(0) >= kSecondsOld;
}

double used_bytes(const Fact& usage) {
  const double total = usage.number("bytes_total").value_or(0);
  const auto used = usage.number("bytes_used");
  return used ? *used : std::max(0.0, total - usage.number("bytes_free").value_or(total));
}

}  // namespace

void SegmentPile::add(const Fact& segment) {
  ++count;
  bytes += segment.number("bytes").value_or(0);
  if (paths.size() < kMostPaths) {
    paths.push_back(segment.text("path").value_or("?"));
  }
}

std::string SegmentPile::said() const {
  return fmt::format("{}{} shared memory segment{} ({})", more ? "at least " : "", count,
                     count == 1 ? "" : "s", base::bytes(bytes));
}

SegmentPile left_by_others(const JobModel& job) {
  SegmentPile pile;
  const auto segments = facts(job, "shm-segment");
  for (const Fact* segment : segments) {
    if (is_left(*segment)) {
      pile.add(*segment);
    }
  }
  double all = 0;
  for (const Fact* usage : facts(job, "shm-usage")) {
    all += usage->number("segments").value_or(0);
  }
  pile.more = all > static_cast<double>(segments.size());
  return pile;
}

bool shm_is_nearly_full(const JobModel& job) {
  const auto all = facts(job, "shm-usage");
  return std::any_of(all.begin(), all.end(), [](const Fact* usage) {
    const double total = usage->number("bytes_total").value_or(0);
    return total > 0 && used_bytes(*usage) >= kNearlyFull * total;
  });
}

std::optional<std::string> note_on_left_segments(const JobModel& job) {
  const SegmentPile pile = left_by_others(job);
  if (pile.count == 0 || shm_is_nearly_full(job)) {
    return std::nullopt;
  }
  return fmt::format(
      "{} of processes that have ended {} in /dev/shm, and this job does not use {}: `ddpdoctor "
      "clean` lists and removes {}",
      pile.said(), pile.count == 1 ? "lies" : "lie", pile.count == 1 ? "it" : "them",
      pile.count == 1 ? "it" : "them");
}

}  // namespace ddpdoctor::model
