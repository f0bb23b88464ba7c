// SPDX-License-Identifier: Apache-2.0
// A rank that caught an error of GPU memory and continued: it skipped a batch with its collectives,
// and the others fail or time out in them.
#pragma once

#include <vector>

#include "collector/detectors/evidence/suspects.h"

namespace ddpdoctor::detectors {

inline constexpr std::string_view kCaughtMemory = "ran out of GPU memory, caught it and continued";

/// The ranks whose output quotes torch's message outside a traceback, if others failed afterwards
/// because of a rank out of step. Without a rank on the line, its GPU is named.
std::vector<Suspect> caught_out_of_memory(const graph::Examination& examination);

/// The GPU of such a line: "GPU 2"; empty if it names none.
std::string gpu_of_message(std::string_view line);

}  // namespace ddpdoctor::detectors
