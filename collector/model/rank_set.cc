// SPDX-License-Identifier: Apache-2.0
#include "collector/model/rank_set.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::model {

namespace {

/// The distance between neighbours, if it is greater than one and the same for at least five ranks,
/// as in a tensor- or data-parallel group.
std::optional<Rank> stride_of(const std::vector<Rank>& ranks) {
  constexpr std::size_t kFewest = 5;
  const Rank step = ranks.size() < kFewest ? 0 : ranks[1] - ranks[0];
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (step < 2 || ranks[i] - ranks[i - 1] != step) {
      return std::nullopt;
    }
  }
  return step < 2 ? std::nullopt : std::optional(step);
}

}  // namespace

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
  if (const auto step = stride_of(ranks_)) {
    return fmt::format("ranks {}-{} step {}", ranks_.front(), ranks_.back(), *step);
  }
  return fmt::format("{} {}", size() == 1 ? "rank" : "ranks", ranges());
}

}  // namespace ddpdoctor::model
