// SPDX-License-Identifier: Apache-2.0
// Ranks that NCCL, gloo or MPI cannot connect to each other: no network interface, or an address
// that other hosts cannot reach. The reporting rank is not the culprit: the interface or the
// address is.
#pragma once

#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Findings of this kind: the messages of the libraries, addresses that reach no other host, and
/// stacks in NCCL's bootstrap.
Findings unreachable_peers(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
