// SPDX-License-Identifier: Apache-2.0
// Which ranks died by themselves: not those that a launcher or another failure ended.
#pragma once

#include <vector>

#include "collector/detectors/evidence/nameless_dead.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

std::vector<Death> deaths(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
