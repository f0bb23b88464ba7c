// SPDX-License-Identifier: Apache-2.0
// Rank 0 tries to connect to the rendezvous that it has to serve.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Rank 0 serves the store and reaches itself immediately; a rank 0 that tries to connect is a
/// client like the others, or was given the address of another machine.
std::optional<Finding> server_connects(const graph::Examination& examination, std::string_view kind,
                                       const model::RankSet& waiting, Confidence still);

}  // namespace ddpdoctor::detectors
