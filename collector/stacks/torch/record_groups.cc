// SPDX-License-Identifier: Apache-2.0
// Group names for recorded calls without one.
#include "collector/stacks/torch/record_groups.h"

#include <algorithm>
#include <utility>

namespace ddpdoctor::stacks {
namespace {

/// The group of the record's number; null for the wrapper's own traffic and unknown numbers.
const TorchGroup* group_of(const FlightRecord& record, const TorchState& state) {
  if (record.group_id < 0 || record.group_id % 2 != 0) {
    return nullptr;
  }
  const auto position = static_cast<std::uint64_t>(record.group_id / 2);
  return position < state.groups.size() ? &state.groups[position] : nullptr;
}

}  // namespace

void name_records(TorchState& state, std::optional<std::int64_t> groups_made) {
  const auto unnamed = [](const FlightRecord& record) { return record.group_name.empty(); };
  if (std::ranges::none_of(state.records, unnamed)) {
    return;
  }
  const bool all_there = groups_made && std::cmp_equal(*groups_made, state.groups.size());
  for (FlightRecord& record : state.records) {
    const TorchGroup* group = unnamed(record) && all_there ? group_of(record, state) : nullptr;
    if (group != nullptr) {
      record.group_name = group->name;
      record.group_description = group->description;
    }
  }
  std::erase_if(state.records, unnamed);
  if (!all_there) {
    state.problem =
        "TORCH_DISTRIBUTED_DEBUG=DETAIL hides the groups of recorded calls; those are left out";
  }
}

}  // namespace ddpdoctor::stacks
