// SPDX-License-Identifier: Apache-2.0
// exit-hang because of a pipe (`torchrun … | tee log`): a process reads the ranks' output until its
// last holder closes it; the holder may be an idle process that a rank started and left running.
#pragma once

#include <optional>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// `reader` waits for the end of a pipe that processes left behind by ranks hold open; at most
/// possible while one of them runs, or if another process holds it, too.
std::optional<Finding> output_is_held(const graph::Examination& examination,
                                      const model::Process& reader);

}  // namespace ddpdoctor::detectors
