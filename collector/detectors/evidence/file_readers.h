// SPDX-License-Identifier: Apache-2.0
// Worker threads that are all in a read of a file while the main thread of their process waits for
// them: storage that does not answer, or answers slowly.
#pragma once

#include <string_view>

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// One finding for each line of the program that reads.
Findings findings_of_file_readers(const graph::Examination& examination, std::string_view kind);

}  // namespace ddpdoctor::detectors
