// SPDX-License-Identifier: Apache-2.0
// exit-hang of a pipe (`torchrun … | tee log`): somebody reads the ranks' output until its last
// holder has closed it, and that may be an idle process which a rank started and left.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// `reader` waits for the end of a pipe that processes which ranks left behind hold open; only
/// possible while one of them runs, or somebody else holds it as well.
std::optional<Finding> output_is_held(const graph::Examination& examination,
                                      const model::Process& reader);

}  // namespace ddpdoctor::detectors
