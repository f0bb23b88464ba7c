// SPDX-License-Identifier: Apache-2.0
// Training written as a generator: who goes over its items takes a step with each, and what is
// done with the last item parts ranks only because the loop inside had ended on some of them.
#pragma once

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// The branch tests an item which a generator gives out behind its loop only ("end"), and the other
/// side is still in that loop: not the test parts them, but the end of the loop. False when the
/// item may have come from within the loop.
bool tests_a_last_item(const model::JobModel& job, const Fork& fork, const Branch& branch);

}  // namespace ddpdoctor::detectors
