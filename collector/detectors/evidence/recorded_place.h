// SPDX-License-Identifier: Apache-2.0
// Facts that the agent recorded where they happened, as suspects.
#pragma once

#include <optional>

#include "collector/detectors/evidence/suspects.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The user's line that the agent put down with `fact`; unknown when it put down none.
model::CallSite recorded_place(const model::Fact& fact);

/// Suspects the process of `fact` at the line where it was recorded (or stands now, when none was).
/// Nothing when its process is unknown or its rank began a collective afterwards: it got over it.
std::optional<Suspect> suspect_of(const graph::Examination& examination, const model::Fact& fact);

}  // namespace ddpdoctor::detectors
