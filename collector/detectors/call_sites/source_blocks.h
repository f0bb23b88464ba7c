// SPDX-License-Identifier: Apache-2.0
// Blocks of the user's source as the branches and loops between two ranks need them.
#pragma once

#include <string>
#include <string_view>

#include "collector/detectors/call_sites/source_path.h"

namespace ddpdoctor::detectors {

/// Lines of a user file that the model carries; empty when none.
const python_source::Lines& lines_of(const model::JobModel& job, const std::string& file);

bool is_loop(const python_source::Block& block);

/// The block is one of those around the line.
bool encloses(const python_source::Lines& lines, const python_source::Block& block, int line);

/// The name of the innermost function around a line; empty at module level.
std::string function_around(const python_source::Lines& lines, int line);

/// "is_main", "rank == 0", "leader": words for single ranks.
bool names_a_rank(std::string_view condition);

/// What the block's condition depends on. A loss that was computed from something of the rank is
/// still each rank's own data.
python_source::Dependence dependence_of(const python_source::Lines& lines,
                                        const python_source::Block& block);

Branch branch_of(const python_source::Block& block, const model::CallSite& guarded,
                 python_source::Dependence on, bool leads_to_ours);

}  // namespace ddpdoctor::detectors
