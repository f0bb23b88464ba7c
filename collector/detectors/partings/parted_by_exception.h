// SPDX-License-Identifier: Apache-2.0
// Whether an exception took one side of a divergence away from what the other still does.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// A rank that repeated its first calls of a function while the others continued in it: a loop
/// around a try began another attempt.
struct Attempt {
  model::RankSet ranks;
  model::CallSite call;   // the repeated call
  model::CallSite again;  // the line in the try that called the function again
};
std::optional<Attempt> another_attempt(const graph::Examination& examination,
                                       const Parting& parting);

/// One side is in a handler of its own, continued after a printed exception, or has begun another
/// attempt: rank-raised reports it, whatever branches are around.
bool parted_by_exception(const graph::Examination& examination, const Parting& parting);

/// Suspect::deed of the ranks accused by attempts().
inline constexpr std::string_view kStartedOver = "raised, was caught and started over";

/// Ranks that restarted a function in which the others continued: an exception was caught and the
/// call retried.
std::vector<Suspect> attempts(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
