// SPDX-License-Identifier: Apache-2.0
// Lists of the functions that a line calls one after the other, as read from the memory of the
// ranks.
#pragma once

#include "collector/model/observed_values.h"

namespace ddpdoctor::detectors {

/// The lists hold the same functions, some of them more often: a matter of how many there are, not
/// of which function a line calls.
bool differ_only_in_number(const model::ReachedBy& reached);

}  // namespace ddpdoctor::detectors
