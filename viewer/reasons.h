// SPDX-License-Identifier: Apache-2.0
// The evidence of a finding that its summary and lines do not already contain.
#pragma once

#include <vector>

#include "collector/detectors/finding.h"

namespace ddpdoctor::viewer {

/// Indices of the evidence that adds something to the summary and the lines of this finding.
/// Reports for programs contain all of it.
std::vector<std::size_t> new_evidence(const detectors::Finding& finding);

}  // namespace ddpdoctor::viewer
