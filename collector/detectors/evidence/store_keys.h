// SPDX-License-Identifier: Apache-2.0
// Matches keys of a store with strings in the user's source. A PrefixStore adds a prefix to each
// key, and the source shows only the fixed parts of an f-string.
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

/// The key as a line of the waiting rank writes it, without prefix; else the whole key.
std::string as_written(const model::JobModel& job, const std::string& key,
                       const graph::Standing& waiter);

/// A call that sets a key of a store.
struct KeyCall {
  int line = 0;
  std::string text;  // on one line
};

/// By the class of the object. A call of such a method on an object whose class is unknown is
/// included: it counts only if it also names the key.
std::vector<KeyCall> calls_that_set_keys(const model::JobModel& job,
                                         const program::SourceText& lines);

/// A line of the user's source that sets the key, and the conditions around it.
struct KeySetter {
  model::CallSite where;
  std::vector<model::CallSite> guards{};  // innermost first
};

/// Finds the line by its strings and those of the helpers that make its key; a key in a named
/// constant is not found.
std::optional<KeySetter> setter_by_string(const model::JobModel& job, std::string_view key);

/// A user line that sets this key; also through a named constant.
std::optional<KeySetter> key_setter(const model::JobModel& job, std::string_view key);

/// The key that this rank waits for, from memory or from the string at the user's line; may be
/// empty.
std::string awaited_key(const model::JobModel& job, const graph::Standing& standing);

/// A line of the user's source that deletes the key; found like the line that sets it.
std::optional<model::CallSite> remover_by_string(const model::JobModel& job, std::string_view key);

}  // namespace ddpdoctor::detectors
