// SPDX-License-Identifier: Apache-2.0
// A call in a function that a backward runs again: activation checkpointing repeats the forward of
// a layer, with the collectives in it. A rank that chose it for itself makes these calls twice.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// The side is in a call that the user's code makes below a backward: a hook, a Function of its
/// own, a forward that is run again. Its gradients are not complete.
bool calls_from_backward(const Side& side);

/// Says so of a side that is in a forward which its backward repeats.
void add_repeated_forward(const Side& side, Finding& finding);

/// One side repeats a forward in its backward, the other waits in the same backward, and the user's
/// code asks for checkpoints by a test of the rank's own data.
bool read_recomputation(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
