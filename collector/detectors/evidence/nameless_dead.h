// SPDX-License-Identifier: Apache-2.0
// Ranks that died before they showed their number: a zombie has no environment with RANK, and of a
// child reaped by its parent only the exit is known.
#pragma once

#include <optional>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The exit of a rank, as far as known.
struct Death {
  model::Rank rank = 0;
  std::optional<model::Exit> exit;
  const model::Process* process = nullptr;
  pid_t pid = 0;  // also if the process no longer exists
};

/// If the number of ended siblings of the ranks equals that of the absent ranks, they are these
/// ranks, numbered in start order.
std::vector<Death> absent_and_dead(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
