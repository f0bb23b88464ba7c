// SPDX-License-Identifier: Apache-2.0
// Segments of shared memory that jobs before this one left behind: memory that is lost, and no
// fault of this job.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// How many, how large, which (the first ones).
struct SegmentPile {
  std::size_t count = 0;
  double bytes = 0;
  bool more = false;  // not every segment was looked at
  std::vector<std::string> paths;

  void add(const Fact& segment);
  [[nodiscard]] std::string said() const;  // "at least 3 shared memory segments (12 MB)"
};

/// Their maker is dead, no process of this job uses them, and they are no newcomers.
SegmentPile left_by_others(const JobModel& job);

/// The file system of shared memory has little room left, for whatever reason.
bool shm_is_nearly_full(const JobModel& job);

/// The sentence for the end of a report; nothing when there are none.
std::optional<std::string> note_on_left_segments(const JobModel& job);

}  // namespace ddpdoctor::model
