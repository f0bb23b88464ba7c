// SPDX-License-Identifier: Apache-2.0
// The lines of a file at which the job called collectives, if the records have all of its calls. An
// agreement at another line, such as one under an option that is off, did not take place.
#pragma once

#include <optional>
#include <set>

#include "collector/program/source_text.h"
#include "collector/program/syntax/node.h"

namespace ddpdoctor::program {

/// Replaces what was known of the file; nullopt: not known.
void set_called_lines(const SourceText& text, std::optional<std::set<int>> lines);

/// False if the records show that the job did not call a collective there.
bool may_have_called(const SourceText& text, Node call);

}  // namespace ddpdoctor::program
