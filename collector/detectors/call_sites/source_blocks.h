// SPDX-License-Identifier: Apache-2.0
// Blocks of the user's source as the branches and loops between two ranks need them.
#pragma once

#include <string>
#include <string_view>

#include "collector/detectors/call_sites/source_path.h"
#include "collector/program/origin/origin.h"

namespace ddpdoctor::detectors {

/// Lines of a user file that the model carries; empty when none.
const python_source::Lines& lines_of(const model::JobModel& job, const std::string& file);

bool is_loop(const python_source::Block& block);

/// The block is one of those around the line.
bool encloses(const python_source::Lines& lines, const python_source::Block& block, int line);

/// The name of the innermost function around a line; empty at module level.
std::string function_around(const python_source::Lines& lines, int line);

/// Where the value of a condition comes from, followed through all files at hand; parameters to
/// `callers` (the frames around its function, innermost first) before all other calls.
program::Origin origin_of(const model::JobModel& job, const python_source::Lines& lines,
                          const python_source::Block& block, const Path& callers = {});

/// The same in three words; what is not known is kData: nothing says that it is alike.
python_source::Dependence dependence_of(const program::Origin& origin);
python_source::Dependence dependence_of(const model::JobModel& job,
                                        const python_source::Lines& lines,
                                        const python_source::Block& block);

/// The condition plainly asks for something that is the rank's own: its data, clock, files.
bool reads_own(const model::JobModel& job, const python_source::Lines& lines,
               const python_source::Block& block);

/// Nothing at hand says where it comes from, or only the name of an attribute does.
bool is_unproven(const program::Origin& origin);

Branch branch_of(const python_source::Block& block, const model::CallSite& guarded,
                 python_source::Dependence on, bool leads_to_ours);

}  // namespace ddpdoctor::detectors
