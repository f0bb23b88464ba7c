// SPDX-License-Identifier: Apache-2.0
// The tests that leave a loop and that may differ between ranks: its own condition, and a `break`
// or `return` under an `if` inside it. If there are several, the source does not show which one it
// was.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/paths/source_path.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/data_ends.h"

namespace ddpdoctor::detectors {

/// "self.should_stop": a flag set elsewhere, if ranks leave a loop at different times. `if stop:
/// break`: a bare name or attribute without comparison or call.
bool is_flag(std::string_view condition);

/// A condition that leaves this loop on some ranks only, the most likely first, the others as its
/// `or_else`. A rank that detects the end of the data (`end`) ends like any loop over data.
std::optional<Branch> way_out_of(const model::JobModel& job, const program::SourceText& lines,
                                 const program::Block& loop, const model::CallSite& in,
                                 const std::optional<program::DataEnd>& end);

/// Adds other conditions that leave the branch's loop, if `in` is in it and `out` is not.
void add_other_ways_out(const model::JobModel& job, const program::SourceText& lines,
                        const model::CallSite& in, const model::CallSite& out, Branch& branch);

}  // namespace ddpdoctor::detectors
