// SPDX-License-Identifier: Apache-2.0
// Compares values read from the ranks' memory between the sides of a divergence: a decision with
// equal values on both did not separate them, one with different values did.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

enum class ValuesSay {
  kNothing,  // not read, stale, or not equal within a side
  kDiffers,  // one value on the odd ranks, a different one on the rest
  kSame,     // one value on all of them: this did not separate them
};

/// For the decision at a line.
ValuesSay values_say(const model::JobModel& job, const model::CallSite& decision,
                     const Parting& parting);

/// The result of the branch is known on both sides and is equal. The values of a host that ran on
/// past the divergence are those of a later iteration, and refute nothing.
bool refuted_by_values(const graph::Examination& examination, const Branch& branch,
                       const Parting& parting);

/// The condition between the fork and one of the two calls whose value differs between the sides.
/// It needs no names: `on` is kRank if what it reads equals the rank's number on every rank, or if
/// the source shows it.
std::optional<Branch> branch_by_values(const model::JobModel& job, const Fork& fork,
                                       const Parting& parting);

/// The number of items in the container that these ranks have iterated completely; nothing if the
/// numbers differ or one is unknown.
std::optional<std::int64_t> length_gone_over(const model::JobModel& job,
                                             const model::CallSite& header,
                                             const model::RankSet& ranks);

/// Held values, in the functions of both sides, that differ between the sides; at most three
/// sentences: "`self.mode` is 'ro' on rank 2, 'rw' on ranks 0-1,3 (fit)".
std::vector<std::string> unlike_values(const model::JobModel& job, const Parting& parting);

}  // namespace ddpdoctor::detectors
