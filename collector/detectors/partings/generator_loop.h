// SPDX-License-Identifier: Apache-2.0
// Training written as a generator: its consumer makes a step with each item, and the handling of
// the last item separates ranks only because the loop inside the generator ended on some of them.
#pragma once

#include "collector/detectors/paths/source_path.h"

namespace ddpdoctor::detectors {

/// The branch tests an item that a generator yields only after its loop ("end"), and the other side
/// is still in that loop: the end of the loop separates them, not the test. False if the item may
/// come from inside the loop.
bool tests_a_last_item(const model::JobModel& job, const Fork& fork, const Branch& branch);

}  // namespace ddpdoctor::detectors
