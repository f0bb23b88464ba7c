// SPDX-License-Identifier: Apache-2.0
// Combines the parts of torch.distributed's state in a process.
#include "collector/stacks/torch/state.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "collector/stacks/torch/groups.h"
#include "collector/stacks/torch/layouts.h"
#include "collector/stacks/torch/record_groups.h"
#include "collector/stacks/torch/recorders.h"
#include "collector/stacks/torch/values.h"
#include "collector/stacks/torch/version.h"

namespace ddpdoctor::stacks {
namespace {

bool has_torch(const Maps& maps) {
  return std::ranges::any_of(maps.all(), [](const Mapping& mapping) {
    return base::file_name(mapping.path).starts_with("libtorch_cpu");
  });
}

std::optional<int> variable_number(const std::map<std::string, std::string>& variables,
                                   const std::string& key) {
  const auto found = variables.find(key);
  if (found == variables.end()) {
    return std::nullopt;
  }
  int value = 0;
  const std::string& digits = found->second;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole && value >= 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<TorchState> read_torch_state(Target& target, PythonReader* python) {
  if (!has_torch(target.maps())) {
    return std::nullopt;
  }
  TorchState state;
  state.version = torch_version(target, python);
  const TorchLayouts layouts = torch_layouts(state.version);
  std::optional<std::int64_t> groups_made;
  if (python != nullptr) {
    auto groups = read_torch_groups(python->objects(), layouts);
    if (!groups) {
      return std::nullopt;
    }
    const auto variables = python->environment();
    state.groups = std::move(groups->groups);
    groups_made = groups->made;
    state.rank = groups->rank ? groups->rank : variable_number(variables, "RANK");
    state.world_size =
        groups->world_size ? groups->world_size : variable_number(variables, "WORLD_SIZE");
  }
  read_recorders(target, python, layouts, state);
  name_records(state, groups_made);
  return state;
}

void show_torch_values(Target& target, PythonReader& python) {
  if (!has_torch(target.maps())) {
    return;
  }
  const TorchLayouts layouts = torch_layouts(torch_version(target, &python));
  PythonObjects& objects = python.objects();
  auto groups = read_torch_groups(objects, layouts).value_or(TorchGroups{});
  objects.set_foreign_repr([&objects, layouts, names = std::move(groups.names)](
                               RemoteAddress object, std::string_view type) {
    return torch_repr(objects, layouts, names, object, type);
  });
}

}  // namespace ddpdoctor::stacks
