// SPDX-License-Identifier: Apache-2.0
// The part of a job that a folder of dumps can represent: calls with names known to torchfrtrace,
// and their groups.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/imports/flight_recorder/messages.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// A call in the form of the dumps.
struct ToldCall {
  const model::CollectiveCall* call = nullptr;
  std::string_view group;  // for a message, its pair's group
  std::int64_t sequence = 0;
  std::string name;  // without the backend
};

using ToldCalls = std::vector<ToldCall>;

/// The representable calls of each rank, in the rank's order. The job must outlive it.
class Told {
 public:
  explicit Told(const model::JobModel& job);

  [[nodiscard]] const std::map<model::Rank, ToldCalls>& calls() const {
    return calls_;
  }
  [[nodiscard]] const std::deque<MessagePair>& pairs() const {
    return messages_.pairs;
  }
  /// Sentences about what the dumps cannot represent.
  [[nodiscard]] std::vector<std::string> left_out() const;

 private:
  void add(const model::CollectiveCall& call);
  void begin_alike();

  std::map<model::Rank, ToldCalls> calls_;
  std::map<std::string, std::size_t> nameless_;
  PairedMessages messages_;
};

/// A group with the members that torchfrtrace needs.
struct KnownGroup {
  std::string description;
  std::string backend;
  std::vector<model::Rank> ranks;
  std::size_t index = 0;
  std::string pair_of{};  // for two ranks that exchange messages: the name of their group
  std::string listed{};   // ranks in the notation of a dump
  std::vector<model::Rank> members{};  // ranks in ascending order
};

/// Group name → group.
using KnownGroups = std::map<std::string_view, KnownGroup>;

/// The groups of the job, those of message pairs, and those that only calls name.
KnownGroups groups_of(const model::JobModel& job, const Told& told);

}  // namespace ddpdoctor::imports
