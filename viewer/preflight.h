// SPDX-License-Identifier: Apache-2.0
// The output of `ddpdoctor check`: pure functions of the answers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "collector/preflight/survey.h"

namespace ddpdoctor::viewer {

/// One block per remark, errors first; a last line with the counts.
std::string preflight_text(const std::vector<preflight::Answer>& answers, std::size_t width,
                           bool colour);

/// ddpdoctor.check/1: {"schema", "will_break", "checks": [{"check", "title", "level", "what",
/// "fix"}]}.
std::string preflight_json(const std::vector<preflight::Answer>& answers);

}  // namespace ddpdoctor::viewer
