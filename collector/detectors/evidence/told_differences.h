// SPDX-License-Identifier: Apache-2.0
// Libraries that compare a value between ranks and raise if it differs: what each rank had. All
// ranks that compare raise; who differs is in the values, not in who raised.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The result of one comparison, as the exceptions of all ranks report it.
struct ToldDifference {
  std::string operation;                      // "gather" if the message names it
  std::map<model::Rank, std::string> values;  // may be of some ranks only
  model::RankSet raised;
  model::CallSite place;  // the user's line
  std::string exception;
};

/// One that this detector reports; empty `exception` if there is none.
ToldDifference told_difference(const model::JobModel& job, std::string_view kind);

/// True for the exceptions of such a comparison.
bool tells_difference(std::string_view exception);

/// The constant part of the message of such a comparison in a line; empty if there is none.
std::string_view comparison_in(std::string_view line, std::string_view kind);

/// How the ranks split by their values. Without a majority, `odd` is the side without the lowest
/// rank, and no rank is accused.
struct ToldSides {
  model::RankSet odd;
  model::RankSet rest;
  std::string odd_value;
  std::string rest_value;
  bool majority = false;
};

/// Empty sides if fewer than two values are known.
ToldSides sides_of(const ToldDifference& difference);

/// The finding with culprits, lines and evidence; the detector adds summary and fix.
Finding finding_of(const graph::Examination& examination, const ToldDifference& difference,
                   const ToldSides& sides, std::string_view kind);

/// "lacks loss_mask", "lack a and b, but have c": how a list with commas differs from another.
std::string how_lists_differ(std::string_view list, std::string_view other, bool many);

}  // namespace ddpdoctor::detectors
