// SPDX-License-Identifier: Apache-2.0
// Labels of Ray, vLLM and SGLang before a line: "(WorkerDict pid=7, ip=10.0.0.3) ", "(Worker_TP1
// pid=291275) ", "[2026-01-29 13:12:37 PP1 TP0] ". Other lines of an actor show its rank.
#pragma once

#include <string>
#include <string_view>

#include "collector/imports/logs/labels.h"

namespace ddpdoctor::imports {

/// The text with "[rank3]: " instead of each label with a known rank; no text if there are none.
Labels with_actors_named(std::string_view text);

/// True if Ray writes a line that several actors printed only once: who else printed it is unknown.
bool folds_lines(std::string_view text);

}  // namespace ddpdoctor::imports
