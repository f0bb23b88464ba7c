// SPDX-License-Identifier: Apache-2.0
// Blocks of the user's source as the branches and loops between two ranks need them.
#pragma once

#include <string>
#include <string_view>

#include "collector/detectors/paths/source_path.h"
#include "collector/program/origin/origin.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {

/// Lines of a user file that the model carries; empty when none.
const program::SourceText& lines_of(const model::JobModel& job, const std::string& file);

bool is_loop(const program::Block& block);

/// The block is one of those around the line.
bool encloses(const program::SourceText& lines, const program::Block& block, int line);

/// The name of the innermost function around a line; empty at module level.
std::string function_around(const program::SourceText& lines, int line);

/// Where the value of a condition comes from, followed through all files at hand; parameters to
/// `callers` (the frames around its function, innermost first) before all other calls.
program::Origin origin_of(const model::JobModel& job, const program::SourceText& lines,
                          const program::Block& block, const Path& callers = {});

/// The same in three words; what is not known is kData: nothing says that it is alike.
program::Dependence dependence_of(const program::Origin& origin);
program::Dependence dependence_of(const model::JobModel& job, const program::SourceText& lines,
                                  const program::Block& block);

/// The condition plainly asks for something that is the rank's own: its data, clock, files.
bool reads_own(const model::JobModel& job, const program::SourceText& lines,
               const program::Block& block);

/// A part of the condition that `and` and `or` join asks for it: `not path.exists() and time() < t`
/// asks for files and for the clock.
bool asks_for(const model::JobModel& job, const program::SourceText& lines,
              const program::Block& block, program::Source source);
/// Nothing at hand says where it comes from, or only the name of an attribute does.
bool is_unproven(const program::Origin& origin);

Branch branch_of(const program::Block& block, const model::CallSite& guarded,
                 program::Dependence on, bool leads_to_ours);

}  // namespace ddpdoctor::detectors
