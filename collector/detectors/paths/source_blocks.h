// SPDX-License-Identifier: Apache-2.0
// Queries on blocks of the user's source, for the branches and loops between two ranks.
#pragma once

#include <string>
#include <string_view>

#include "collector/detectors/paths/source_path.h"
#include "collector/program/origin/origin.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/dependence.h"

namespace ddpdoctor::detectors {

/// The known lines of a user file; empty if there are none.
const program::SourceText& lines_of(const model::JobModel& job, const std::string& file);

bool is_loop(const program::Block& block);

/// The block encloses the line.
bool encloses(const program::SourceText& lines, const program::Block& block, int line);

/// The name of the innermost function around a line; empty at module level.
std::string function_around(const program::SourceText& lines, int line);

/// The origin of a condition's value through all known files; parameters are followed to `callers`
/// (the frames around its function, innermost first) before all other calls.
program::Origin origin_of(const model::JobModel& job, const program::SourceText& lines,
                          const program::Block& block, const Path& callers = {});

/// The same as a Dependence; unknown is kData, because nothing shows that it is equal on all ranks.
program::Dependence dependence_of(const program::Origin& origin);
program::Dependence dependence_of(const model::JobModel& job, const program::SourceText& lines,
                                  const program::Block& block);

/// The condition directly reads something of the rank's own: its data, clock, files.
bool reads_own(const model::JobModel& job, const program::SourceText& lines,
               const program::Block& block);

/// An operand of `and` and `or` in the condition reads it: `not path.exists() and time() < t` reads
/// files and the clock.
bool asks_for(const model::JobModel& job, const program::SourceText& lines,
              const program::Block& block, program::Source source);
/// Its origin is unknown, or known only by the name of an attribute.
bool is_unproven(const program::Origin& origin);

Branch branch_of(const program::Block& block, const model::CallSite& guarded,
                 program::Dependence on, bool leads_to_ours);

}  // namespace ddpdoctor::detectors
