// SPDX-License-Identifier: Apache-2.0
// What was read from the memory of the ranks, asked along the sides of a parting: a decision that
// came out alike on both did not part them, one that differs did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

enum class ValuesSay {
  kNothing,  // not read, stale, or not alike within a side
  kDiffers,  // one value on the odd ranks, another one on the rest
  kSame,     // one value on all of them: this did not part them
};

/// Of the decision at a line.
ValuesSay values_say(const model::JobModel& job, const model::CallSite& decision,
                     const Parting& parting);

/// What the branch came out to is known on both sides, and is the same.
bool refuted_by_values(const model::JobModel& job, const Branch& branch, const Parting& parting);

/// The condition on the way from the fork to one of the two calls whose value differs between the
/// sides. It rests on no name: `on` is kRank where what it reads is the
/// number of the rank on every rank, or the source says so.
std::optional<Branch> branch_by_values(const model::JobModel& job, const Fork& fork,
                                       const Parting& parting);

/// How many items the container has that a loop of these ranks went over to its end; nothing where
/// they are not alike, or one is not known.
std::optional<std::int64_t> length_gone_over(const model::JobModel& job,
                                             const model::CallSite& header,
                                             const model::RankSet& ranks);

/// What the functions that both sides are in have at hand that differs along the sides, at most
/// three, in sentences: "`self.mode` is 'ro' on rank 2, 'rw' on ranks 0-1,3 (fit)".
std::vector<std::string> unlike_values(const model::JobModel& job, const Parting& parting);

}  // namespace ddpdoctor::detectors
