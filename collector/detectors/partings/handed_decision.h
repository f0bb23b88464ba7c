// SPDX-License-Identifier: Apache-2.0
// A framework led ranks to different calls. It runs the same code on every rank, so the difference
// came from the user's program: from what it gives the framework by a decision of each rank's own.
#pragma once

#include <vector>

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"
#include "collector/program/questions/handed_over.h"

namespace ddpdoctor::detectors {

const std::vector<program::HandedOver>& handed_over(const graph::Examination& examination);

/// The program decides on each rank by itself what it gives the framework; results and constants,
/// which may be data, do not count.
bool hands_over_decisions(const graph::Examination& examination);

/// Adds the lines at which the user's program decides what the framework gets, and the fix there,
/// if no line of the user's explains the divergence; the likeliest ones only. Returns without a
/// change if there are none, or too many to tell anything.
void add_handed_decisions(const graph::Examination& examination, const Explanation& explanation,
                          Finding& finding);

}  // namespace ddpdoctor::detectors
