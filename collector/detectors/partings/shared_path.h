// SPDX-License-Identifier: Apache-2.0
// The fork of a divergence, with what all ranks of a side have in common. A side's path is that of
// one of its ranks; what only this rank passed separates no side.
#pragma once

#include <optional>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// The fork of the two sides' paths. Frames below it that a rank of the same side, in the same
/// call, does not share are left out. nullopt as of fork_of.
std::optional<Fork> fork_between(const graph::Examination& examination, const Parting& parting);

}  // namespace ddpdoctor::detectors
