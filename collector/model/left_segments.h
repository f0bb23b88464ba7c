// SPDX-License-Identifier: Apache-2.0
// Shared-memory segments left behind by earlier jobs: they occupy memory, and this job is not the
// cause.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::model {

/// Their number, size and first paths.
struct SegmentPile {
  std::size_t count = 0;
  double bytes = 0;
  bool more = false;  // not all segments were checked
  std::vector<std::string> paths;

  void add(const Fact& segment);
  [[nodiscard]] std::string said() const;  // "at least 3 shared memory segments (12 MB)"
};

/// Segments whose creator has exited, that no process of this job uses, and that are not new.
SegmentPile left_by_others(const JobModel& job);

/// The shared-memory file system is nearly full, for whatever reason.
bool shm_is_nearly_full(const JobModel& job);

/// A sentence for the end of a report. Nothing if there are no such segments, or if the file system
/// is nearly full, because shm-leaked reports that.
std::optional<std::string> note_on_left_segments(const JobModel& job);

}  // namespace ddpdoctor::model
