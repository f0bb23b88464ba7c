// SPDX-License-Identifier: Apache-2.0
// Process groups as the Python module torch.distributed.distributed_c10d keeps them: names,
// members, backends. The same module-level dicts have been there since torch 1.x, so this works
// without a layout; only rank and description need one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/stack.h"
#include "collector/stacks/torch/layouts.h"

namespace ddpdoctor::stacks {

struct TorchGroups {
  std::vector<TorchGroup> groups;  // the default group first, the others as they were made
  std::map<RemoteAddress, std::string> names;  // Python object of a group → its name
  std::optional<int> rank;                     // global
  std::optional<int> world_size;
  std::optional<std::int64_t>
      made;  // groups this process has numbered so far, its own and others', living or not
};

/// Nothing when the module was never imported.
std::optional<TorchGroups> read_torch_groups(PythonObjects& objects, const TorchLayouts& layouts);

/// The C++ object behind an instance of a class made by pybind11; nothing when unreadable.
std::optional<RemoteAddress> bound_value(PythonObjects& objects, RemoteAddress instance);

}  // namespace ddpdoctor::stacks
