// SPDX-License-Identifier: Apache-2.0
// A job that has ended as it was said to end while it ran: what it failed with is a consequence.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The ranks with fewer steps never reached the call in which those with more failed.
std::optional<Finding> foreseen_uneven(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
