// SPDX-License-Identifier: Apache-2.0
#include "viewer/rank_words.h"

#include <fmt/format.h>

#include "base/numbers.h"

namespace ddpdoctor::viewer {

namespace {

constexpr std::size_t kMostCharacters = 48;
// Two or three numbers are shorter than the text with a step.
constexpr std::size_t kFewestSteps = 4;

/// The distance between neighbours if it is constant and more than one, else 0.
int step_of(const std::vector<model::Rank>& ranks) {
  if (ranks.size() < kFewestSteps) {
    return 0;
  }
  const int step = ranks[1] - ranks[0];
  for (std::size_t i = 2; i < ranks.size(); ++i) {
    if (ranks[i] - ranks[i - 1] != step) {
      return 0;
    }
  }
  return step > 1 ? step : 0;
}

}  // namespace

std::string rank_words(const model::RankSet& ranks) {
  const std::vector<model::Rank>& values = ranks.values();
  if (const int step = step_of(values); step != 0) {
    return fmt::format("ranks {}-{} step {}", values.front(), values.back(), step);
  }
  std::string words = ranks.said();
  return words.size() > kMostCharacters ? base::grouped(ranks.size()) + " ranks" : words;
}

}  // namespace ddpdoctor::viewer
