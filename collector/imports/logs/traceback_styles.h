// SPDX-License-Identifier: Apache-2.0
// Tracebacks that a package printed in place of Python: better_exchook (frames with "line:" and
// "locals:"), loguru (blank lines, "> File", values below the source).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

/// The text with such tracebacks as Python prints them, without values. If the locals name the
/// rank, its lines begin with it.
struct PlainTracebacks {
  std::string text;
  std::vector<model::RankSet> members;  // of the groups that their locals list
};

/// Nothing if the text has none.
std::optional<PlainTracebacks> with_plain_tracebacks(std::string_view text);

}  // namespace ddpdoctor::imports
