// SPDX-License-Identifier: Apache-2.0
// Whether an exception led one side of a parting out of what the other still does.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// A rank that made its first calls of a function once more where the others went on in it: a loop
/// around a try began another attempt.
struct Attempt {
  model::RankSet ranks;
  model::CallSite call;   // made again
  model::CallSite again;  // the line in the try that began the function anew
};
std::optional<Attempt> another_attempt(const graph::Examination& examination,
                                       const Parting& parting);

/// One side stands in a handler of its own, was led on by an exception that was printed, or has
/// begun another attempt: rank-raised tells it, whatever branches lie around.
bool parted_by_exception(const graph::Examination& examination, const Parting& parting);

/// Suspect::deed of those whom attempts() accuses.
inline constexpr std::string_view kStartedOver = "raised, was caught and started over";

/// Ranks that began a function anew in which the others went on: what raised was caught and tried
/// again.
std::vector<Suspect> attempts(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
