// SPDX-License-Identifier: Apache-2.0
// Divergences in two groups at once: an order of the groups, a call too many, or a value of each
// rank's own of which the two groups are only the consequence.
#pragma once

#include <vector>

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets the cause of explanations that hold each other; `all` has one for each of `parted`.
void settle_orders(const graph::Examination& examination, const std::vector<Parting>& parted,
                   std::vector<Explanation>& all);

}  // namespace ddpdoctor::detectors
