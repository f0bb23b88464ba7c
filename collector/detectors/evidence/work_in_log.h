// SPDX-License-Identifier: Apache-2.0
// Only a log is known: what a rank that did not wait was doing when the others timed out.
#pragma once

#include <optional>
#include <string>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Work of which the log is evidence.
struct WorkInLog {
  std::optional<model::Rank> rank;  // its own prefix, or the only rank that did not wait
  model::RankSet waiting;
  std::string operation;  // in which they waited
  std::string what;       // "Tokenizing: 328986 of 359152", or a message
  std::string evidence;
  bool seen = false;  // it continued while the others waited; else it was only announced before
};

std::optional<WorkInLog> work_in_log(const graph::Examination& examination);

/// Its output is in the log, but not its line: a rank that did not wait when others timed out.
bool is_elsewhere(const graph::Standing& standing);

/// The other ranks timed out in new_group, which it had not called.
std::optional<Finding> missing_in_new_group(const graph::Examination& examination);

/// For a finding that this rank is missing, if it was elsewhere: at most possible if its work is
/// known, else with its last message.
void tell_work_in_log(const graph::Examination& examination, const graph::Standing* standing,
                      Finding& finding);

}  // namespace ddpdoctor::detectors
