// SPDX-License-Identifier: Apache-2.0
// Ranks whose own exception holds them where they stand: in a handler, or on their way out.
#pragma once

#include <string_view>
#include <vector>

#include "collector/detectors/evidence/suspects.h"

namespace ddpdoctor::detectors {

/// Suspect::deed: what such a rank did.
inline constexpr std::string_view kRaised = "raised";
inline constexpr std::string_view kTriesAgain = "keeps trying what raised";

/// Ranks that stand in an except or finally block, where not all of them do: that would be how the
/// program works. One that sleeps there before it tries again is at most kPossible.
std::vector<Suspect> stand_in_handler(const graph::Examination& examination);

/// Ranks that failed, said so, and stand on their way out while others wait for them.
std::vector<Suspect> failed_on_their_way_out(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
