// SPDX-License-Identifier: Apache-2.0
// The recorded calls in which two sides diverge, as evidence.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/detectors/partings/parting.h"

namespace ddpdoctor::detectors {

/// What each side called according to the records, and how far a host is ahead of its device.
void add_calls(const graph::Examination& examination, const Parting& parting, Finding& finding);

}  // namespace ddpdoctor::detectors
