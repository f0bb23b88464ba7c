// SPDX-License-Identifier: Apache-2.0
// The report as a document, before it is written as text.
#pragma once

#include <nlohmann/json.hpp>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::viewer {

/// The report as docs/report.schema.json describes it.
nlohmann::ordered_json report_tree(const diagnosis::Diagnosis& diagnosis);

}  // namespace ddpdoctor::viewer
