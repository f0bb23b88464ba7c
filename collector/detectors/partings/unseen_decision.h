// SPDX-License-Identifier: Apache-2.0
// All ranks wait at one line and nothing is recorded: hosts that ran ahead of their devices. What
// parted them lies behind them. Where the source has one decision only that each rank takes by
// itself and that leads to a collective, that is told; at most possible.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"
#include "collector/detectors/paths/source_path.h"
#include "collector/graph/examination.h"
#include "collector/program/libraries/libraries.h"

namespace ddpdoctor::detectors {

struct UnseenDecision {
  Branch branch;  // `guarded` is the line of the collective
  std::string operation;
  bool inside = true;  // the branch leads to it where it holds; else where it does not
  program::Source source = program::Source::kUnknown;
  model::CallSite standing;  // where all ranks are
};

/// Without records: one of the ranks where all wait, for a device or for others, and do so at one
/// line; else nullptr.
const graph::Standing* common_standing(const graph::Examination& examination);

/// Nothing where ranks are at different lines, where calls are recorded, and where none or several
/// decisions fit.
std::optional<UnseenDecision> unseen_decision(const graph::Examination& examination);

/// What is said of it, as a finding of this kind.
Finding finding_of(const graph::Examination& examination, const UnseenDecision& decision,
                   std::string kind);

}  // namespace ddpdoctor::detectors
