// SPDX-License-Identifier: Apache-2.0
// A host runs ahead of its device: its stack, and the values of its variables, may belong to a
// later call than the one at which the ranks diverged.
#pragma once

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// According to its records, the side has launched calls of the group after its call at the
/// divergence.
bool ran_on(const graph::Examination& examination, const Side& side);

}  // namespace ddpdoctor::detectors
