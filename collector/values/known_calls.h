// SPDX-License-Identifier: Apache-2.0
// Functions and properties of libraries whose result is a fact of the process: a table keyed by
// module and name of the called function object, independent of the name in the source.
#pragma once

#include <optional>
#include <string_view>

#include "collector/stacks/stack.h"
#include "collector/values/value.h"

namespace ddpdoctor::values {

/// Facts about the process from other evidence.
struct ProcessFacts {
  std::optional<int> rank;
  std::optional<int> world_size;
  bool group_exists = false;  // init_process_group() has returned
  std::string torch_version;  // "2.13.0+cpu"; empty = unknown
};

/// From torch in the process, else from torchrun's variables.
ProcessFacts facts_of(const stacks::ProcessStacks& process);

/// `whole_world`: the call names no group, or it is a property.
std::optional<Value> known_answer(const ProcessFacts& facts, std::string_view module,
                                  std::string_view qualname, bool whole_world);

}  // namespace ddpdoctor::values
