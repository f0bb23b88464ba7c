// SPDX-License-Identifier: Apache-2.0
// What both forms of RAS's answer show of a job, before it becomes part of the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

constexpr std::size_t kLongestRasHost = 256;

/// A process that did not answer RAS, as far as known.
struct Silent {
  std::string host;
  std::optional<std::int64_t> pid;
  bool dead = false;  // RAS has given it up; otherwise it only answered too late
};

/// The progress of the ranks of one communicator.
struct RasCommunicator {
  std::string id;
  std::int64_t size = 0;
  std::string operation;  // operation of the counts; empty = all operations together
  std::map<model::Rank, std::int64_t> counts;  // launched operations, by rank in the communicator
  std::map<model::Rank, Silent> missing;       // ranks that did not answer
  std::optional<std::int64_t> majority;        // count of the ranks that are not listed
};

/// Adds the answer. The largest communicator is the world: only its ranks are global ranks.
/// `world`: ranks of the largest communicator of the job, if the answer shows it apart from these;
/// 0 = unknown. `told`: the answer in words.
void add_ras_answer(std::vector<RasCommunicator> all, std::int64_t world, std::string told,
                    model::JobModel& job);

}  // namespace ddpdoctor::imports
