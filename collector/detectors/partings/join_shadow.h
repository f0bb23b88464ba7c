// SPDX-License-Identifier: Apache-2.0
// torch's Join: a rank without further data takes part in the collectives of the modules passed to
// Join, and in no others.
#pragma once

#include "collector/detectors/partings/cause.h"

namespace ddpdoctor::detectors {

/// Sets loop and cause if one side is at Join's end and the other in a call of its own inside that
/// Join.
bool read_join(const graph::Examination& examination, Explanation& explanation);

}  // namespace ddpdoctor::detectors
