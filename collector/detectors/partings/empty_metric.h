// SPDX-License-Identifier: Apache-2.0
// A torchmetrics metric that one rank never updated: the state it synchronizes is empty, with
// another type and fewer dimensions than those of the others.
#pragma once

#include "collector/detectors/partings/disagreed.h"

namespace ddpdoctor::detectors {

/// If the calls show it, adds to `finding`, which is about a call below `metric.compute()`, whose
/// metric had no values and which update it skipped. Otherwise returns false and changes nothing.
bool tell_empty_metric(const graph::Examination& examination, const Disagreed& disagreed,
                       Finding& finding);

}  // namespace ddpdoctor::detectors
