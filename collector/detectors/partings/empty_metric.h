// SPDX-License-Identifier: Apache-2.0
// A metric of torchmetrics that one rank never updated: what it has to sync is empty, of another
// type and with fewer dimensions than the values of the others.
#pragma once

#include "collector/detectors/partings/disagreed.h"

namespace ddpdoctor::detectors {

/// Says in `finding`, which is about a call below `metric.compute()`, whose metric had no values
/// and which update it passed by; false, and nothing is changed, where that is not what they show.
bool tell_empty_metric(const graph::Examination& examination, const Disagreed& disagreed,
                       Finding& finding);

}  // namespace ddpdoctor::detectors
