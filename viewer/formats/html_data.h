// SPDX-License-Identifier: Apache-2.0
// The data of the page: the report plus what only drawings need, packed.
#pragma once

#include <string>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

/// JSON. The page can unpack report.json from it.
std::string html_data(const diagnosis::Diagnosis& diagnosis);

}  // namespace ddpdoctor::viewer
