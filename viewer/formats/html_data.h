// SPDX-License-Identifier: Apache-2.0
// What the page draws: the report and what only a drawing needs, packed.
#pragma once

#include <string>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

/// JSON. The page can unpack report.json from it.
std::string html_data(const diagnosis::Diagnosis& diagnosis);

}  // namespace ddpdoctor::viewer
