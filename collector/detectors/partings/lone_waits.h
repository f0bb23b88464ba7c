// SPDX-License-Identifier: Apache-2.0
// From a log: each of the two ranks that it names waits in a group of which it names no other
// member.
#pragma once

#include <optional>

#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// The two ranks as a tie, in the group of `rest`. A call that waits has a peer: the other rank, or
/// one that no text names.
std::optional<Parting> lone_waits(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
