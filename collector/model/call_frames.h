// SPDX-License-Identifier: Apache-2.0
// The frames of the newest recorded calls, and of calls that a log tells with a traceback, with
// those of frameworks: CollectiveCall::callers has the user's only. Stored as facts of kind
// "call-frames", so recordings carry them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"
#include "collector/sources/rings/reader.h"

namespace ddpdoctor::model {

inline constexpr std::string_view kCallFrames = "call-frames";

/// The id of a group by its index in a recording.
using GroupId = std::string (*)(const sources::Recording& recording, std::size_t index);

/// Keeps of one rank's calls the newest in each group, and the newest ones before it that came from
/// other frames: one of them is common to ranks that diverged after it.
class NewestFrames {
 public:
  explicit NewestFrames(Rank rank) : rank_(rank) {}

  /// Calls must be added from the newest to the oldest, without point-to-point messages. The
  /// elements of `frames` have file, line and function.
  template <typename Frames>
  void add(const std::string& group, std::int64_t sequence, const Frames& frames) {
    auto& kept = kept_[group];
    if (kept.size() == kMost || (!kept.empty() && is_same(kept.back().frames, frames))) {
      return;
    }
    kept.push_back({.sequence = sequence, .frames = {}});
    for (const auto& frame : frames) {
      kept.back().frames.push_back(
          {.file = frame.file, .line = frame.line, .function = frame.function});
    }
  }

  /// One fact for each kept call that a framework made: rank, group, sequence, frames ("line
  /// function file", innermost first).
  [[nodiscard]] std::vector<Fact> facts() const;

 private:
  static constexpr std::size_t kMost = 3;

  struct Call {
    std::int64_t sequence = 0;
    std::vector<CallSite> frames;  // innermost first
  };

  template <typename Frames>
  static bool is_same(const std::vector<CallSite>& kept, const Frames& frames) {
    return std::equal(kept.begin(), kept.end(), frames.begin(), frames.end(),
                      [](const CallSite& one, const auto& other) {
                        return one.line == other.line && one.file == other.file &&
                               one.function == other.function;
                      });
  }

  Rank rank_;
  std::map<std::string, std::vector<Call>> kept_;  // newest first
};

/// Those of a recording, which must be of a rank.
std::vector<Fact> newest_frames(const sources::Recording& recording, GroupId group_id);

/// Such a fact of one call; `frames` are innermost first, and those of other files are left out.
Fact frames_fact(Rank rank, const std::string& group, std::int64_t sequence,
                 const std::vector<CallSite>& frames);

/// The frames of the user and of frameworks in such a fact, innermost first.
std::vector<CallSite> frames_in(const Fact& fact);

/// Removes the facts of these ranks: their recordings have better ones.
void drop_frames(JobModel& job, const RankSet& ranks);

/// Those of one call; empty if they are not known.
std::vector<CallSite> frames_of_call(const JobModel& job, Rank rank, const std::string& group,
                                     std::int64_t sequence);

}  // namespace ddpdoctor::model
