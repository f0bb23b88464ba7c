// SPDX-License-Identifier: Apache-2.0
// A signal from outside that ended torchrun's agent, and with it all ranks: a closed terminal, the
// end of an allocation.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// For SIGHUP and SIGTERM, if no rank had failed before. Ctrl-C is not a fault.
std::optional<Finding> ended_from_outside(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
