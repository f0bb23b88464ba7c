// SPDX-License-Identifier: Apache-2.0
// The tests that lead out of a loop and that ranks may answer differently: its own condition and
// the `break` or `return` under an `if` inside of it. Where there are several, nothing in the
// source says which of them it was.
#pragma once

#include <optional>
#include <string_view>

#include "collector/detectors/paths/source_path.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/data_ends.h"

namespace ddpdoctor::detectors {

/// "self.should_stop": a flag that something set, where ranks leave a loop at different times.
/// `if stop: break`: a bare name or attribute, nothing compared, nothing called.
bool is_flag(std::string_view condition);

/// A condition that leaves this loop on some ranks only, the likeliest first, the others as its
/// `or_else`. Who notices that there is no more data (`end`) only ends as any loop over data does.
std::optional<Branch> way_out_of(const model::JobModel& job, const program::SourceText& lines,
                                 const program::Block& loop, const model::CallSite& in,
                                 const std::optional<program::DataEnd>& end);

/// What else leads out of the loop that the branch leaves, where `in` is in it and `out` is not.
void add_other_ways_out(const model::JobModel& job, const program::SourceText& lines,
                        const model::CallSite& in, const model::CallSite& out, Branch& branch);

}  // namespace ddpdoctor::detectors
