// SPDX-License-Identifier: Apache-2.0
#include "collector/model/rank_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::model {

RankSet::RankSet(std::initializer_list<Rank> ranks) : RankSet(std::vector<Rank>(ranks)) {}

RankSet::RankSet(std::vector<Rank> ranks) : ranks_(std::move(ranks)) {
  std::sort(ranks_.begin(), ranks_.end());
  ranks_.erase(std::unique(ranks_.begin(), ranks_.end()), ranks_.end());
}

void RankSet::insert(Rank rank) {
  const auto place = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  if (place == ranks_.end() || *place != rank) {
    ranks_.insert(place, rank);
  }
}

void RankSet::erase(Rank rank) {
  const auto place = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  if (place != ranks_.end() && *place == rank) {
    ranks_.erase(place);
  }
}

bool RankSet::contains(Rank rank) const {
  return std::binary_search(ranks_.begin(), ranks_.end(), rank);
}

RankSet RankSet::united(const RankSet& other) const {
  RankSet out;
  std::set_union(begin(), end(), other.begin(), other.end(), std::back_inserter(out.ranks_));
  return out;
}

RankSet RankSet::minus(const RankSet& other) const {
  RankSet out;
  std::set_difference(begin(), end(), other.begin(), other.end(), std::back_inserter(out.ranks_));
  return out;
}

RankSet RankSet::common(const RankSet& other) const {
  RankSet out;
  std::set_intersection(begin(), end(), other.begin(), other.end(), std::back_inserter(out.ranks_));
  return out;
}

std::string RankSet::ranges() const {
  return base::ranges(ranks_);
}

std::string RankSet::said() const {
  if (empty()) {
    return "no rank";
  }
  if (size() == 2) {
    return fmt::format("ranks {} and {}", ranks_[0], ranks_[1]);
  }
  return fmt::format("{} {}", size() == 1 ? "rank" : "ranks", ranges());
}

}  // namespace ddpdoctor::model
