// SPDX-License-Identifier: Apache-2.0
// What the memory of all ranks shows about one decision or loop.
#pragma once

#include <optional>

#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// The values of a decision on all ranks: equal, or which ranks have the smaller of two values.
struct RankValues {
  bool known = false;
  model::RankSet less{};
  model::RankSet more{};

  [[nodiscard]] bool differs() const {
    return !less.empty();
  }
  /// The smaller side; if equal, the ranks with fewer batches, with more elements, or that called.
  [[nodiscard]] const model::RankSet& odd(bool fewer) const {
    return less.size() != more.size() ? (less.size() < more.size() ? less : more)
           : fewer                    ? less
                                      : more;
  }
};

/// For the decision at a line, or the length of the loop there; unknown unless it was read on each
/// of these ranks and has at most two values.
RankValues rank_values(const model::JobModel& job, const model::CallSite& where, bool loop,
                       const model::RankSet& ranks);

/// The nearest test before a line with one value on these ranks and the other one on those.
std::optional<model::CallSite> test_between(const model::JobModel& job, const model::CallSite& line,
                                            const model::RankSet& these,
                                            const model::RankSet& those);

/// The loops of the ranks are equally far on all of them according to their iterators; false if
/// none shows it.
bool are_at_one_step(const model::JobModel& job);

}  // namespace ddpdoctor::detectors
