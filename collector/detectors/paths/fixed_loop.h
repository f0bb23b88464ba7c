// SPDX-License-Identifier: Apache-2.0
// A loop with the same number of iterations on every rank: no rank leaves it early, so the
// difference is inside it.
#pragma once

#include "collector/detectors/paths/source_path.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {

/// "for step in range(300)", "for p in model.parameters()": by its origin, the iterable has the
/// same length on every rank, or is a generator with such a loop in the file; and there is no exit
/// before its end on the path to line `inside`. A caught exception inside counts as an exit.
bool is_fixed(const model::JobModel& job, const program::SourceText& lines,
              const program::Block& loop, int inside);

/// The items of this loop were counted on at least two ranks, as many on each of them.
bool was_read_as_long(const model::JobModel& job, const model::CallSite& header);

/// A test that skips some items of the loop ("if p.grad is not None") is between the loop and line
/// `inside`.
bool is_filtered(const program::SourceText& lines, const program::Block& loop, int inside);

}  // namespace ddpdoctor::detectors
