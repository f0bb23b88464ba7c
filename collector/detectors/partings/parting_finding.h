// SPDX-License-Identifier: Apache-2.0
// The part of a finding that is the same for every cause of a divergence: culprits, waiting ranks,
// lines, evidence.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets culprits, waiting ranks, confidence, locations (culprit's line, waiting line, branch) and
/// evidence. `extra_facts` are added to records and stacks.
Finding finding_of(const graph::Examination& examination, const Explanation& explanation,
                   int extra_facts = 0);

/// The condition before the calls whose value differs between the sides, as a place with this note;
/// false when none is seen.
bool add_choice(const graph::Examination& examination, const Explanation& explanation,
                std::string_view note, Finding& finding);

/// One finding for each explanation with this cause; `tell` writes summary and fix.
Findings findings_with(const graph::Examination& examination, Cause cause, std::string_view kind,
                       const std::function<void(const Explanation&, Finding&)>& tell);

}  // namespace ddpdoctor::detectors
