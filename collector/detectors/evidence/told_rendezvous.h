// SPDX-License-Identifier: Apache-2.0
// What the messages of the rendezvous in logs say: how many ranks were expected, how many joined.
#pragma once

#include "collector/detectors/finding.h"
#include "collector/graph/examination.h"

namespace ddpdoctor::detectors {

/// Findings of rendezvous-incomplete from logs. A rank that timed out was present; members of the
/// world without such a message were not, unless more had joined than wrote it.
Findings rendezvous_told_by_logs(const graph::Examination& examination);

}  // namespace ddpdoctor::detectors
