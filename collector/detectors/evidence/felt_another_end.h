// SPDX-License-Identifier: Apache-2.0
// Logs in which every rank that wrote a traceback failed because of another one.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// An `undetermined` that says which ranks lost which other, and which rank's end is not shown;
/// empty if a rank raised for its own reasons, or processes were seen running.
Findings felt_another_end(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
