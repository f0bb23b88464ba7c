// SPDX-License-Identifier: Apache-2.0
// A rank that uses the CPU, and of which it is unknown whether it works.
#pragma once

#include "collector/graph/standing.h"

namespace ddpdoctor::detectors {

/// A Python stack of another tool does not show whether a rank that uses the CPU works or spins
/// until its GPU has caught up: the operations of a module do both.
bool may_spin(const graph::Standing& standing);

}  // namespace ddpdoctor::detectors
