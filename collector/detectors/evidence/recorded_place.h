// SPDX-License-Identifier: Apache-2.0
// Facts that the agent recorded where they occurred, as suspects.
#pragma once

#include <optional>

#include "collector/detectors/evidence/suspects.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The user's line that the agent recorded with `fact`; unknown if there is none.
model::CallSite recorded_place(const model::Fact& fact);

/// Suspects the process of `fact` at the recorded line (else at its current line). Nothing if its
/// process is unknown, or if its rank began a collective afterwards, because it had recovered.
std::optional<Suspect> suspect_of(const graph::Examination& examination, const model::Fact& fact);

}  // namespace ddpdoctor::detectors
