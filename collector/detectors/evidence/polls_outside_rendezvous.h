// SPDX-License-Identifier: Apache-2.0
// rendezvous-incomplete although all processes live: some wait in init_process_group for a rank
// that polls for something else.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Nothing if a rank outside the rendezvous does anything but poll, or may be on its way to it.
std::optional<Finding> polls_outside_rendezvous(const graph::Examination& examination,
                                                const model::RankSet& arrived);

}  // namespace ddpdoctor::detectors
