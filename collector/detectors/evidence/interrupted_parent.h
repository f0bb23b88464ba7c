// SPDX-License-Identifier: Apache-2.0
// A person pressed Ctrl-C, and the log has the traceback of the process that waited for its
// children: neither a failure nor the place of the hang.
#pragma once

#include <optional>
#include <vector>

#include "collector/detectors/evidence/first_to_fail.h"
#include "collector/detectors/finding.h"

namespace ddpdoctor::detectors {

/// An undetermined finding if an interrupt is the only exception of the log.
std::optional<Finding> interrupted_parent(const std::vector<FeltAnEnd>& felt);

}  // namespace ddpdoctor::detectors
