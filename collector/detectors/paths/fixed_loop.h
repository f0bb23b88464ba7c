// SPDX-License-Identifier: Apache-2.0
// A loop that every rank goes round equally often: nobody leaves it a step early, so what differs
// lies inside it.
#pragma once

#include "collector/detectors/paths/source_path.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/source_text.h"

namespace ddpdoctor::detectors {

/// "for step in range(300)", "for p in model.parameters()": what it goes over is as long on every
/// rank, by its origin, or a generator of the file that is made so; and there is no way out of it
/// before its end on the way to line `inside`. An exception that is caught inside is such a way.
bool is_fixed(const model::JobModel& job, const program::SourceText& lines,
              const program::Block& loop, int inside);

/// A test that drops some of what a loop goes over ("if p.grad is not None") stands between the
/// loop and line `inside`.
bool is_filtered(const program::SourceText& lines, const program::Block& loop, int inside);

}  // namespace ddpdoctor::detectors
