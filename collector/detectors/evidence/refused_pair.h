// SPDX-License-Identifier: Apache-2.0
// NCCL connects two ranks when their first messages meet. If both send, or both receive, each reads
// the other's connection data in the wrong form, and the call fails with an address of no family.
#pragma once

#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The finding about pairs of ranks whose last recorded messages are for each other and go in one
/// direction, if NCCL has failed in this way; otherwise none.
Findings refused_pairs(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
