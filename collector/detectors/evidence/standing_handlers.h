// SPDX-License-Identifier: Apache-2.0
// Ranks that their own exception keeps from continuing: in a handler, or while they exit.
#pragma once

#include <string_view>
#include <vector>

#include "collector/detectors/evidence/suspects.h"

namespace ddpdoctor::detectors {

/// Suspect::deed: what such a rank did.
inline constexpr std::string_view kRaised = "raised";
inline constexpr std::string_view kTriesAgain = "keeps trying what raised";

/// Ranks in an except or finally block, unless all ranks are: that would be how the program works.
/// A rank that sleeps there before a retry is at most kPossible.
std::vector<Suspect> stand_in_handler(const graph::Examination& examination);

/// Ranks that failed, printed it, and are exiting while others wait for them.
std::vector<Suspect> failed_on_their_way_out(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
