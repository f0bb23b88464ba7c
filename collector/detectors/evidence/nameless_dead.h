// SPDX-License-Identifier: Apache-2.0
// Ranks that died before they told who they are: a zombie has no environment to read RANK from, and
// of a child that its parent has reaped only the end is known.
#pragma once

#include <optional>
#include <vector>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// The end of a rank, as far as it is known.
struct Death {
  model::Rank rank = 0;
  std::optional<model::Exit> exit;
  const model::Process* process = nullptr;
  pid_t pid = 0;  // also where there is no process any more
};

/// As many ended siblings of the ranks as absent ranks: then these are those. Which is which is
/// told by the order in which they were started.
std::vector<Death> absent_and_dead(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
