// SPDX-License-Identifier: Apache-2.0
// Process groups as stored in the Python module torch.distributed.distributed_c10d: names, members,
// backends. The same module-level dicts exist since torch 1.x, so no layout is needed; only rank
// and description need one.
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
  std::vector<TorchGroup> groups;  // the default group first, the others in order of creation
  std::map<RemoteAddress, std::string> names;  // Python object of a group → its name
  std::optional<int> rank;                     // global rank
  std::optional<int> world_size;
  std::optional<std::int64_t> made;  // number of groups this process has numbered so far: its own
                                     // and others', existing or destroyed
};

/// Nothing if the module was never imported.
std::optional<TorchGroups> read_torch_groups(PythonObjects& objects, const TorchLayouts& layouts);

/// The C++ object of an instance of a pybind11 class; nothing if unreadable.
std::optional<RemoteAddress> bound_value(PythonObjects& objects, RemoteAddress instance);

}  // namespace ddpdoctor::stacks
