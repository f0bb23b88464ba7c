// SPDX-License-Identifier: Apache-2.0
// The tensors that one warning of Horovod's stall inspector lists, and the ranks that submitted
// each of them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// Ranks that submitted the same of the stalled tensors.
struct StalledSide {
  std::vector<model::Rank> ranks;
  std::vector<std::string> submitted;  // that another side has not
  std::vector<std::string> lacking;    // that another side has
};

/// The lists of one warning.
class StalledTensors {
 public:
  /// False if the line neither lists tensors and ranks nor is a heading of such lines.
  bool read(std::string_view line);

  [[nodiscard]] bool empty() const {
    return ready_.empty() && missing_.empty() && by_rank_.empty();
  }
  /// The largest rank that the lines name.
  [[nodiscard]] model::Rank largest() const {
    return largest_;
  }
  /// All ranks up to `last` that have not submitted one of the tensors.
  [[nodiscard]] std::set<model::Rank> missing(model::Rank last) const;
  /// Of the first tensor that some rank has not submitted.
  [[nodiscard]] const std::string& first() const {
    return first_;
  }
  /// Sides of which each submitted a tensor that another side has not, in both directions: waiting
  /// cannot end it. Empty if some ranks are only behind the others. `last`: the largest known rank;
  /// `all_ranks`: the world has no larger one.
  [[nodiscard]] std::vector<StalledSide> opposed(model::Rank last, bool all_ranks) const;

 private:
  enum class Has { kNo, kYes, kUnknown };
  struct OfRank {
    std::set<std::string> tensors;
    bool more = false;  // "...": further names are not listed
  };

  bool read_tensors(std::string_view line);
  bool read_rank(std::string_view line);
  [[nodiscard]] std::set<std::string> names() const;
  [[nodiscard]] Has has(model::Rank rank, const std::string& tensor) const;
  [[nodiscard]] Has has_in_world(model::Rank rank, const std::string& tensor,
                                 std::optional<model::Rank> last) const;
  std::set<model::Rank> ranks_in(std::string_view list);

  std::map<std::string, std::set<model::Rank>> ready_;    // "a [ready ranks: 1]"
  std::map<std::string, std::set<model::Rank>> missing_;  // "a [missing ranks: 0]"
  std::map<model::Rank, OfRank> by_rank_;                 // "0: [a, b ...]", which it has not
  std::string first_;
  model::Rank largest_ = 0;
};

}  // namespace ddpdoctor::imports
