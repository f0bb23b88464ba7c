// SPDX-License-Identifier: Apache-2.0
// Keys of a store as the user's source names them: a PrefixStore puts its own words before them,
// an f-string leaves some open.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/graph/standing.h"

namespace ddpdoctor::detectors {

/// The end of a key that a string of the source stands for: "plan/2" of "sched/plan/2" for
/// `plan/{step}`. Empty when the string names another key. Points into `key`.
std::string_view written_part(std::string_view key, std::string_view literal);

/// What the lines on the way to the wait call the key; the whole key when none of them names it.
std::string as_written(const model::JobModel& job, const std::string& key,
                       const graph::Standing& waiter);

/// A line of the user's that sets the key, and the tests that lead to it.
struct KeySetter {
  model::CallSite where;
  std::vector<model::CallSite> guards{};  // innermost first
};

/// By the strings of the lines; `job`'s constants are for those who ask with names.
std::optional<KeySetter> setter_by_string(const model::JobModel& job, std::string_view key);

}  // namespace ddpdoctor::detectors
