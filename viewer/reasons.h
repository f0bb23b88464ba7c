// SPDX-License-Identifier: Apache-2.0
// Which evidence of a finding a person still has to read after its summary and its lines.
#pragma once

#include <vector>

#include "collector/detectors/finding.h"

namespace ddpdoctor::viewer {

/// The evidence that says more than the summary and the lines of this finding, as indexes into its
/// list. Reports for programs have all of it.
std::vector<std::size_t> new_evidence(const detectors::Finding& finding);

}  // namespace ddpdoctor::viewer
