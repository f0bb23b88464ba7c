// SPDX-License-Identifier: Apache-2.0
// All ranks wait at one line and nothing is recorded: hosts that ran ahead of their devices. What
// parted them lies behind them. The choice or loop of the source that most speaks for is told:
// where the memory of the ranks shows that it came out differently, as likely; else as possible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/unseen_candidates.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

struct UnseenDecision {
  Candidate decision;
  std::vector<Candidate> rivals;  // of which as much speaks for, further back
  std::string_view kind;          // of the finding
  model::CallSite standing;       // where all ranks are
};

/// Without records: one of the ranks where all wait, for a device or for others, and do so at one
/// line; else nullptr.
const graph::Standing* common_standing(const graph::Examination& examination);

/// Nothing where ranks are at different lines, where calls are recorded, where no choice fits or
/// too many do.
const std::optional<UnseenDecision>& unseen_decision(const graph::Examination& examination);

/// The finding of this kind that tells it; none where it is of another kind.
Findings unseen_findings(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
