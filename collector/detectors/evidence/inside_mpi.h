// SPDX-License-Identifier: Apache-2.0
// Ranks in one call of MPI that took different paths inside it: one may have left its setup after
// an error while the others still wait there.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Two sides of ranks in one public function of MPI, each in a collective that MPI itself calls
/// from a different function.
std::optional<Finding> parted_inside_mpi(const graph::Examination& examination,
                                         std::string_view kind);

}  // namespace ddpdoctor::detectors
