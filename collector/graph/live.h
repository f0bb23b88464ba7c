// SPDX-License-Identifier: Apache-2.0
// A running job at one instant, as `ddpdoctor watch` shows it: what each rank does, how far the
// groups are, which ranks wait for which, which are late. Values only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

struct LiveRank {
  model::Rank rank = 0;
  pid_t pid = 0;
  std::string doing;  // "all_reduce #1043 of default_pg", "computing"
  std::string place;  // "train.py:88 in step"; empty = unknown
  /// Mean seconds behind the first rank, over the newest collectives of the world.
  std::optional<double> lag;
};

struct LiveGroup {
  std::string name;
  std::string backend;
  std::int64_t sequence = 0;  // the newest that any member has called
  std::string operation;      // empty = unknown
  /// Operation → ranks, if ranks made different operations as their newest call; empty otherwise.
  std::map<std::string, model::RankSet> operations = {};
  model::RankSet joined;   // ranks that have called it
  model::RankSet missing;  // members with evidence that have not called it
};

/// The diagnosis that `attach` gives for a job that makes no calls.
struct LiveVerdict {
  std::string summary;
  std::string about;  // "missing-rank, certain"
  std::string fix;
  bool possible = false;
};

struct LiveView {
  std::string title;  // the job's command, or how the job was found
  std::optional<int> world_size;
  std::vector<LiveRank> ranks;
  std::vector<LiveGroup> groups;
  std::vector<std::string> waits;  // "ranks 0-1,3 wait for rank 2: all_reduce #9 of default_pg"
  std::uint64_t calls = 0;         // calls of all ranks since the start, as far as known
  std::optional<double> calls_per_second;
  std::optional<double> still_for;  // seconds without progress
  std::optional<LiveVerdict> verdict;
  bool ended = false;
  std::vector<std::string> notes;  // what could not be observed
};

LiveView live_view(const model::JobModel& job);

}  // namespace ddpdoctor::graph
