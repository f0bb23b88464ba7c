// SPDX-License-Identifier: Apache-2.0
// A log that ends in a question to a person: a menu with numbers, "[y/N]", "Password:".
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// One finding per log; none while the job makes progress.
Findings prompts_in_logs(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
