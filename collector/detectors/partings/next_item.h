// SPDX-License-Identifier: Apache-2.0
// A worker's loop: one rank handles an item, and another one is at the head of the same loop and
// waits for the next: it returned early from the handling of this one.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// The explanation with another cause, if a test of the rank, or of something that each rank
/// decides by itself, separates them; otherwise unchanged.
Explanation with_next_item(const graph::Examination& examination, Explanation explanation);

}  // namespace ddpdoctor::detectors
