// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/partings/holders.h"

#include <utility>

namespace ddpdoctor::detectors {
namespace {

using graph::Activity;

/// It waits for a child, a thread or a person of its own: for no other rank.
bool waits_for_its_own(const graph::Standing& standing) {
  switch (standing.activity) {
    case Activity::kDataLoader:
    case Activity::kJoin:
    case Activity::kLock:
    case Activity::kImport:
    case Activity::kInput:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool narrow_to_holders(const graph::Examination& examination, Side& missing) {
  model::RankSet holders;
  for (const model::Rank rank : missing.ranks) {
    const graph::Standing* standing = examination.standing(rank);
    if (standing == nullptr) {
      return false;
    }
    if (waits_for_its_own(*standing)) {
      holders.insert(rank);
    } else if (standing->activity != Activity::kGpu && !standing->waits_for_ranks()) {
      return false;
    }
  }
  if (holders.empty() || holders.size() == missing.ranks.size()) {
    return false;
  }
  missing.standing = examination.standing(holders.front());
  missing.ranks = std::move(holders);
  return true;
}

}  // namespace ddpdoctor::detectors
