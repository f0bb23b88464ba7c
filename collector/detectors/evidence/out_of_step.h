// SPDX-License-Identifier: Apache-2.0
// Counts of calls that cannot belong together: a rank has finished more calls of a group than a
// rank that is still in an earlier one allows.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// A rank that is still in a call, and one that has finished the call with the next number, too.
/// The next call cannot finish without the first rank, so these two paired different calls.
struct OutOfStep {
  model::Rank behind = 0;
  model::Rank ahead = 0;
  std::int64_t finished = 0;                    // by the rank ahead, the newest
  const model::CollectiveCall* open = nullptr;  // of the rank behind
};

/// Only the counts of a watchdog show this: if the calls themselves were recorded, they are
/// compared.
std::optional<OutOfStep> out_of_step(const graph::Examination& examination,
                                     const graph::GroupView& view);

/// One of these ranks is the one behind: not absent, but at a different point of the program.
bool lost_step(const graph::Examination& examination, std::string_view group,
               const model::RankSet& ranks);

/// The finding mismatched-op for the first group in which ranks are out of step.
Findings calls_out_of_step(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
