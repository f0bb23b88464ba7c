// SPDX-License-Identifier: Apache-2.0
// What was read from the memory of all ranks about one decision or loop.
#pragma once

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// What was read of a decision on all ranks: alike, or who has the lesser of two values.
struct RankValues {
  bool known = false;
  model::RankSet less{};
  model::RankSet more{};

  [[nodiscard]] bool differs() const {
    return !less.empty();
  }
  /// The fewer ranks; in a tie those with fewer batches, with more elements, those who called.
  [[nodiscard]] const model::RankSet& odd(bool fewer) const {
    return less.size() != more.size() ? (less.size() < more.size() ? less : more)
           : fewer                    ? less
                                      : more;
  }
};

/// Of the decision at a line, or of the length of the loop there; unknown unless it was read on
/// each of these ranks and has two values at most.
RankValues rank_values(const model::JobModel& job, const model::CallSite& where, bool loop,
                       const model::RankSet& ranks);

/// The loops that the ranks are in have come equally far on all of them, as far as their iterators
/// say; false where none says it.
bool are_at_one_step(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
