// SPDX-License-Identifier: Apache-2.0
// exit-hang of a pipe (`torchrun … | tee log`): somebody reads the ranks' output until its last
// holder has closed it, and that may be an idle process which a rank started and left.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// `reader` waits for the end of a pipe that only idle processes outside the job hold open.
std::optional<Finding> output_is_held(const graph::Examination& examination,
                                      const model::Process& reader);

}  // namespace ddpdoctor::detectors
