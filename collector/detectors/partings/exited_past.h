// SPDX-License-Identifier: Apache-2.0
// A rank ended by itself without an error, and every run that ends so passes the line at which the
// others wait. It has made that call earlier, so it skipped another call before it.
#pragma once

#include <optional>

#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

struct ExitedPast {
  const graph::Standing* standing = nullptr;  // any rank that waits
  model::RankSet left;
  model::RankSet waiting;
};

/// Nothing unless all remaining ranks wait at one line.
std::optional<ExitedPast> exited_past(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
