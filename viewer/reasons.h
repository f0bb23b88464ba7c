// SPDX-License-Identifier: Apache-2.0
// The evidence of a finding that its summary and lines do not already contain.
#pragma once

#include <string>
#include <vector>

#include "collector/detectors/finding.h"

namespace ddpdoctor::viewer {

/// The facts that say more than the summary and the lines of this finding, each with the ranks it
/// is about: "ranks 0 and 1: log: …". Reports for programs have all evidence, one by one.
std::vector<std::string> reasons(const detectors::Finding& finding);

}  // namespace ddpdoctor::viewer
