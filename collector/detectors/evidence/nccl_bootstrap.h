// SPDX-License-Identifier: Apache-2.0
// Native stacks of ranks that connect to each other for NCCL's setup (its bootstrap).
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Some ranks are in connect() and others in accept() of the bootstrap: the network does not carry
/// the connection. A reachable listener answers connect() at once, so one snapshot is possible.
std::optional<Finding> stuck_in_bootstrap(const graph::Examination& examination,
                                          std::string_view kind);

}  // namespace ddpdoctor::detectors
