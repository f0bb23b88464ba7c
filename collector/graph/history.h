// SPDX-License-Identifier: Apache-2.0
// The recorded calls of a job by group, rank and sequence number. Point-to-point calls are kept
// separately, because they are numbered per rank.
#pragma once

#include <deque>
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

/// An index of JobModel::collectives; the job must outlive it.
class History {
 public:
  History() = default;
  explicit History(const model::JobModel& job);
  // Lists refer to nodes by pointer; a move keeps these valid, a copy would not.
  History(const History&) = delete;
  History& operator=(const History&) = delete;
  History(History&&) = default;
  History& operator=(History&&) = default;
  ~History() = default;

  [[nodiscard]] bool empty() const {
    return by_group_.empty() && point_to_point_.empty();
  }
  /// Groups with calls, ordered by id.
  [[nodiscard]] std::vector<std::string> groups() const;
  /// Collectives of a rank in a group, oldest first; empty if none is recorded.
  [[nodiscard]] const Calls& calls(std::string_view group, model::Rank rank) const;
  /// Ranks with recorded collectives in the group.
  [[nodiscard]] const std::map<model::Rank, Calls>& ranks(std::string_view group) const;
  [[nodiscard]] const model::CollectiveCall* at(std::string_view group, model::Rank rank,
                                                std::int64_t sequence) const;
  /// The newest collective of a rank in a group.
  [[nodiscard]] const model::CollectiveCall* last(std::string_view group, model::Rank rank) const;
  /// The collectives of a rank: one list for each group in which it has any.
  [[nodiscard]] const std::vector<const Calls*>& lanes(model::Rank rank) const;
  /// True if the rank's recorder was read completely, even if it was empty.
  [[nodiscard]] bool was_read(model::Rank rank) const;
  /// Sends and receives of a rank in all groups, oldest first.
  [[nodiscard]] const Calls& point_to_point(model::Rank rank) const;
  /// From now on, this collective of the history was made at these lines, innermost first. The job
  /// keeps the call as it was recorded.
  void place(const model::CollectiveCall& call, std::vector<model::CallSite> callers);

 private:
  std::map<std::string, std::map<model::Rank, Calls>, std::less<>> by_group_;
  std::map<model::Rank, Calls> point_to_point_;
  std::unordered_map<model::Rank, std::vector<const Calls*>> lanes_;
  std::unordered_set<model::Rank> read_;
  std::deque<model::CollectiveCall> placed_;
};

/// True for operations that are matched by peer.
bool is_point_to_point(std::string_view operation);

/// File and line are equal wherever both are known.
bool same_line(const model::CallSite& a, const model::CallSite& b);

/// The user's frames of a recorded call, innermost first; at least the call site if it is known.
std::vector<model::CallSite> callers_of(const model::CollectiveCall& call);

/// The same; a record that names its line alone is completed from the host's stack (`host`,
/// innermost first) if the host is still in the function of that line.
std::vector<model::CallSite> callers_of(const model::CollectiveCall& call,
                                        const std::vector<model::CallSite>& host);

}  // namespace ddpdoctor::graph
