// SPDX-License-Identifier: Apache-2.0
// The recorded calls of a job in reading order: for each group and rank by sequence number.
// Point-to-point calls stand apart, because their numbers are counted per rank and not alike by
// every member.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::graph {

/// Calls of one rank, by sequence number, without duplicates.
using Calls = std::vector<const model::CollectiveCall*>;

/// An index into JobModel::collectives; the job must outlive it.
class History {
 public:
  History() = default;
  explicit History(const model::JobModel& job);
  // Lists are found through pointers to their nodes, which a move keeps and a copy would not.
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  History(History&&) = default;
  History& operator=(History&&) = default;
  ~History() = default;

  [[nodiscard]] bool empty() const {
    return by_group_.empty() && point_to_point_.empty();
  }
  /// Groups that have calls, in order of their id.
  [[nodiscard]] std::vector<std::string> groups() const;
  /// Collectives of a rank in a group, oldest first; empty when none is recorded.
  [[nodiscard]] const Calls& calls(std::string_view group, model::Rank rank) const;
  /// Ranks with recorded collectives in the group.
  [[nodiscard]] const std::map<model::Rank, Calls>& ranks(std::string_view group) const;
  [[nodiscard]] const model::CollectiveCall* at(std::string_view group, model::Rank rank,
                                                std::int64_t sequence) const;
  /// The newest collective of a rank in a group.
  [[nodiscard]] const model::CollectiveCall* last(std::string_view group, model::Rank rank) const;
  /// The collectives of a rank, one list for each group in which it has some.
  [[nodiscard]] const std::vector<const Calls*>& lanes(model::Rank rank) const;
  /// Whether the rank's recorder was read to its end, also when it held nothing.
  [[nodiscard]] bool was_read(model::Rank rank) const;
  /// Sends and receives of a rank in all groups, oldest first.
  [[nodiscard]] const Calls& point_to_point(model::Rank rank) const;

 private:
  std::map<std::string, std::map<model::Rank, Calls>, std::less<>> by_group_;
  std::map<model::Rank, Calls> point_to_point_;
  std::unordered_map<model::Rank, std::vector<const Calls*>> lanes_;
  std::unordered_set<model::Rank> read_;
};

/// True for the operations that are matched by peer.
bool is_point_to_point(std::string_view operation);

/// Equal where both are known: file, line.
bool same_line(const model::CallSite& a, const model::CallSite& b);

/// The user's frames of a recorded call, innermost first; at least the call site when that is
/// known.
std::vector<model::CallSite> callers_of(const model::CollectiveCall& call);

}  // namespace ddpdoctor::graph
