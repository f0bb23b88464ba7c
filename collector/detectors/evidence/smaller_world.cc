// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/smaller_world.h"

#include <charconv>
#include <cstddef>
#include <set>
#include <string>

#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

bool meet_with_two_sizes(const graph::Examination& examination, const model::RankSet& waiting,
                         const model::RankSet& ended) {
  std::set<std::size_t> sizes;
  for (const model::Rank rank : waiting) {
    const graph::Standing* const standing = examination.standing(rank);
    if (standing == nullptr || standing->process == nullptr) {
      return false;
    }
    const auto found = standing->process->environment.find("WORLD_SIZE");
    const std::string text =
        found == standing->process->environment.end() ? std::string() : found->second;
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size()) {
      return false;
    }
    sizes.insert(size);
  }
  const std::size_t left = model::all_ranks(examination.job).minus(ended).size();
  return sizes.size() > 1 && *sizes.begin() <= left;
}

}  // namespace ddpdoctor::detectors
