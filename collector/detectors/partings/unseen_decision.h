// SPDX-License-Identifier: Apache-2.0
// All ranks wait at one line and nothing is recorded: their hosts ran ahead of the devices; or a
// rank that must have passed that line has ended. The cause is before the line. Reports the choice
// or loop of the source with the strongest evidence: as likely if the ranks' memory shows different
// results, otherwise as possible.
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
  std::vector<Candidate> rivals;  // with equally strong evidence, further back
  std::string_view kind;          // kind of the finding
  model::CallSite standing;       // current line of all ranks
  model::RankSet left{};          // ranks that have passed it and ended
};

/// Without records: any of the ranks if all wait, for a device or for other ranks, at one line;
/// otherwise nullptr.
const graph::Standing* common_standing(const graph::Examination& examination);

/// Nothing if ranks are at different lines, if calls are recorded, if no choice matches or too many
/// do.
const std::optional<UnseenDecision>& unseen_decision(const graph::Examination& examination);

/// The finding if it has this kind; otherwise none.
Findings unseen_findings(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
