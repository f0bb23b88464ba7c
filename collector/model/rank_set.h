// SPDX-License-Identifier: Apache-2.0
// A set of global ranks, printed as ranges.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace ddpdoctor::model {

/// A global rank: index in the world. The word "rank" always means this one.
using Rank = int;

/// A larger world size is treated as garbage: sizes come from files and environments with arbitrary
/// content.
inline constexpr int kMaxWorldSize = 1 << 17;

/// Sorted, unique ranks.
class RankSet {
 public:
  RankSet() = default;
  RankSet(std::initializer_list<Rank> ranks);
  explicit RankSet(std::vector<Rank> ranks);

  void insert(Rank rank);
  void erase(Rank rank);
  [[nodiscard]] bool contains(Rank rank) const;
  [[nodiscard]] bool empty() const {
    return ranks_.empty();
  }
  [[nodiscard]] std::size_t size() const {
    return ranks_.size();
  }
  [[nodiscard]] Rank front() const {
    return ranks_.front();
  }
  [[nodiscard]] const std::vector<Rank>& values() const {
    return ranks_;
  }
  [[nodiscard]] auto begin() const {
    return ranks_.begin();
  }
  [[nodiscard]] auto end() const {
    return ranks_.end();
  }

  [[nodiscard]] RankSet united(const RankSet& other) const;
  [[nodiscard]] RankSet minus(const RankSet& other) const;
  [[nodiscard]] RankSet common(const RankSet& other) const;

  /// "0-6,8"
  [[nodiscard]] std::string ranges() const;
  /// "rank 3", "ranks 0 and 1", "ranks 0-2,4"
  [[nodiscard]] std::string said() const;

  friend bool operator==(const RankSet&, const RankSet&) = default;
  friend auto operator<=>(const RankSet&, const RankSet&) = default;

 private:
  std::vector<Rank> ranks_;
};

}  // namespace ddpdoctor::model
