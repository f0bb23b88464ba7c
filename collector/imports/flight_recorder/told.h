// SPDX-License-Identifier: Apache-2.0
// What of a job a folder of dumps can say: calls with names that torchfrtrace knows, and the groups
// they are made in.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/imports/flight_recorder/messages.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// A call as the dumps say it.
struct ToldCall {
  const model::CollectiveCall* call = nullptr;
  std::string_view group;  // of a message: its pair's
  std::int64_t sequence = 0;
  std::string name;  // without the backend
};

using ToldCalls = std::vector<ToldCall>;

/// The calls of each rank that can be told, in the rank's order. The job must outlive it.
class Told {
 public:
  explicit Told(const model::JobModel& job);

  [[nodiscard]] const std::map<model::Rank, ToldCalls>& calls() const {
    return calls_;
  }
  [[nodiscard]] const std::deque<MessagePair>& pairs() const {
    return messages_.pairs;
  }
  /// Sentences: what the dumps cannot say.
  [[nodiscard]] std::vector<std::string> left_out() const;

 private:
  void add(const model::CollectiveCall& call);
  void begin_alike();

  std::map<model::Rank, ToldCalls> calls_;
  std::map<std::string, std::size_t> nameless_;
  PairedMessages messages_;
};

/// A group with the members that torchfrtrace wants to know.
struct KnownGroup {
  std::string description;
  std::string backend;
  std::vector<model::Rank> ranks;
  std::size_t index = 0;
  std::string pair_of{};               // for two ranks that exchange messages: in which group
  std::string listed{};                // the ranks as a dump says them
  std::vector<model::Rank> members{};  // the ranks in order
};

/// By name.
using KnownGroups = std::map<std::string_view, KnownGroup>;

/// The groups of the job, those of pairs, and those that only calls name.
KnownGroups groups_of(const model::JobModel& job, const Told& told);

}  // namespace ddpdoctor::imports
