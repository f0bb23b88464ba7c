// SPDX-License-Identifier: Apache-2.0
// Keys of a store as the user's source writes them. A PrefixStore puts its prefix before them, and
// an f-string has parts that are known only when the program runs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/graph/standing.h"

namespace ddpdoctor::detectors {

/// The end of a key that a string of the source can produce: "plan/2" of "sched/plan/2" for
/// `plan/{step}`. Empty if the string cannot produce it. Points into `key`.
std::string_view written_part(std::string_view key, std::string_view literal);

/// The key as the waiting rank's lines write it; the whole key if none of them does.
std::string as_written(const model::JobModel& job, const std::string& key,
                       const graph::Standing& waiter);

/// The line calls a method that sets a key of a store. The class of the object is not known: a
/// line with such a call counts only if it also names the key.
bool sets_a_key(std::string_view line);

/// A line of the user's source that sets the key, and the tests around it.
struct KeySetter {
  model::CallSite where;
  std::vector<model::CallSite> guards{};  // innermost first
};

/// Finds the line by the strings in it; a key in a named constant is not found.
std::optional<KeySetter> setter_by_string(const model::JobModel& job, std::string_view key);

}  // namespace ddpdoctor::detectors
