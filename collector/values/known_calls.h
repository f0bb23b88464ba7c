// SPDX-License-Identifier: Apache-2.0
// Functions and properties of libraries whose answer is a fact of the process: a table, by the
// module and name of the function object that is called, whatever the source calls it.
#pragma once

#include <optional>
#include <string_view>

#include "collector/values/value.h"

namespace ddpdoctor::values {

/// What is known of the process otherwise.
struct ProcessFacts {
  std::optional<int> rank;
  std::optional<int> world_size;
  bool group_exists = false;  // init_process_group() has returned
  std::string torch_version;  // "2.13.0+cpu"; empty = unknown
};

/// `whole_world`: it is asked without a group, or is a property.
std::optional<Value> known_answer(const ProcessFacts& facts, std::string_view module,
                                  std::string_view qualname, bool whole_world);

}  // namespace ddpdoctor::values
