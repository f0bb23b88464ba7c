// SPDX-License-Identifier: Apache-2.0
// Process groups as stored in torch.distributed.distributed_c10d.
#include "collector/stacks/torch/groups.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "collector/stacks/torch/cpp_objects.h"

namespace ddpdoctor::stacks {
namespace {

constexpr std::string_view kModule = "torch.distributed.distributed_c10d";
constexpr std::size_t kMaxGroups = 1U << 14;
constexpr std::size_t kMaxRanks = 1U << 20;
constexpr std::size_t kMaxName = 512;

/// pybind11::detail::instance: value and holder (or a pointer to them), the list of weak
/// references, then flag bits.
constexpr RemoteAddress kFlagsAfterHeader = 32;
constexpr unsigned kSimpleLayout = 2;  // second bit, after `owned`

std::string text(PythonObjects& objects, RemoteAddress object) {
  return base::printable(objects.string(object, kMaxName).value_or(""));
}

/// "gloo" for "cpu:gloo,cuda:gloo"; mixed configurations are unchanged.
std::string backend_of_config(std::string_view config) {
  std::set<std::string_view> backends;
  for (const std::string_view part : base::split(config, ',')) {
    backends.insert(part.substr(part.find(':') + 1));
  }
  return std::string(backends.size() == 1 ? *backends.begin() : config);
}

class GroupReader {
 public:
  GroupReader(PythonObjects& objects, RemoteAddress module, const TorchLayouts& layouts)
      : objects_(objects),
        module_(module),
        layout_(layouts.likely()),
        known_(layouts.exact != nullptr) {}

  TorchGroups read();

 private:
  RemoteAddress global(std::string_view name) {
    return objects_.item(module_, name).value_or(0);
  }
  /// The default group; 0 before init_process_group.
  RemoteAddress default_group();
  RemoteAddress value(std::string_view dict, RemoteAddress group);
  std::vector<int> ranks(RemoteAddress group);
  std::string backend(RemoteAddress group);
  void add_native(RemoteAddress group, TorchGroup& described, TorchGroups& result, bool is_default);

  PythonObjects& objects_;
  RemoteAddress module_;
  const TorchLayout* layout_;
  bool known_;  // the layout belongs to exactly this release
  std::map<std::string_view, std::map<RemoteAddress, RemoteAddress>> dicts_;
};

RemoteAddress GroupReader::default_group() {
  if (const RemoteAddress world = global("_world"); world != 0) {  // torch 2.0+
    const auto group = objects_.attribute(world, "_default_pg");
    if (group && *group != 0 && !objects_.is_none(*group)) {
      return *group;
    }
  }
  const RemoteAddress group = global("_default_pg");  // torch 1.x
  return objects_.is_none(group) ? 0 : group;
}

RemoteAddress GroupReader::value(std::string_view dict, RemoteAddress group) {
  auto known = dicts_.find(dict);
  if (known == dicts_.end()) {
    known = dicts_.emplace(dict, std::map<RemoteAddress, RemoteAddress>{}).first;
    for (const auto& [key, entry] : objects_.items(global(dict), kMaxGroups)) {
      known->second.emplace(key, entry);
    }
  }
  const auto entry = known->second.find(group);
  return entry == known->second.end() ? 0 : entry->second;
}

std::vector<int> GroupReader::ranks(RemoteAddress group) {
  std::vector<std::pair<std::int64_t, std::int64_t>> members;  // (group rank, global rank)
  for (const auto& [global_rank, group_rank] :
       objects_.items(value("_pg_group_ranks", group), kMaxRanks)) {
    const auto outer = objects_.integer(global_rank);
    const auto inner = objects_.integer(group_rank);
    if (!outer || !inner || *outer < 0 || std::cmp_greater(*outer, kMaxRanks)) {
      return {};
    }
    members.emplace_back(*inner, *outer);
  }
  std::ranges::sort(members);
  std::vector<int> result;
  result.reserve(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (std::cmp_not_equal(members[i].first, i)) {
      return {};  // the group ranks are not 0, 1, 2, …
    }
    result.push_back(static_cast<int>(members[i].second));
  }
  return result;
}

std::string GroupReader::backend(RemoteAddress group) {
  const auto parts = objects_.elements(value("_pg_map", group), 2);  // (backend, store)
  std::string name = parts.empty() ? "" : text(objects_, parts[0]);
  if (name.empty() || name == "undefined") {
    name = text(objects_, value("_pg_backend_config", group));
  }
  return backend_of_config(name);
}

void GroupReader::add_native(RemoteAddress group, TorchGroup& described, TorchGroups& result,
                             bool is_default) {
  const auto native = layout_ == nullptr ? std::nullopt : bound_value(objects_, group);
  if (!native) {
    return;
  }
  RemoteMemory& memory = objects_.memory();
  if (!known_ && !cpp_type_name(memory, *native).value_or("").ends_with("ProcessGroupE")) {
    return;
  }
  const auto rank = memory.get<std::int32_t>(*native + layout_->group_rank);
  const auto size = memory.get<std::int32_t>(*native + layout_->group_size);
  if (!rank || !size || *rank < 0 || *rank >= *size || described.ranks.empty() ||
      std::cmp_not_equal(*size, described.ranks.size())) {
    return;  // the Python and C++ data of a group must agree
  }
  if (is_default) {
    result.rank = described.ranks[static_cast<std::size_t>(*rank)];
  }
  const auto description = cpp_string(memory, *native + layout_->group_text, kMaxName);
  if (description && *description != "undefined") {
    described.description = base::printable(*description);
  }
}

TorchGroups GroupReader::read() {
  TorchGroups result;
  const RemoteAddress world = default_group();
  result.made = objects_.integer(global("_group_count"));
  for (const auto& [group, name] : objects_.items(global("_pg_names"), kMaxGroups)) {
    const bool is_default = group == world && world != 0;
    TorchGroup described{.name = text(objects_, name),
                         .description = is_default ? "default_pg" : "",
                         .backend = backend(group),
                         .ranks = ranks(group)};
    add_native(group, described, result, is_default);
    result.names.emplace(group, described.name);
    if (is_default) {
      if (!described.ranks.empty()) {
        result.world_size = static_cast<int>(described.ranks.size());
      }
      result.groups.insert(result.groups.begin(), std::move(described));
    } else {
      result.groups.push_back(std::move(described));
    }
  }
  return result;
}

}  // namespace

std::optional<RemoteAddress> bound_value(PythonObjects& objects, RemoteAddress instance) {
  RemoteMemory& memory = objects.memory();
  const RemoteAddress start = instance + objects.header_size();
  const auto value = memory.get<RemoteAddress>(start);
  const auto flags = memory.get<std::uint8_t>(start + kFlagsAfterHeader);
  if (!value || !flags || *value == 0) {
    return std::nullopt;
  }
  return (*flags & kSimpleLayout) != 0 ? value : memory.get<RemoteAddress>(*value);
}

std::optional<TorchGroups> read_torch_groups(PythonObjects& objects, const TorchLayouts& layouts) {
  const auto module = objects.module(kModule);
  if (!module) {
    return std::nullopt;
  }
  return GroupReader(objects, *module, layouts).read();
}

}  // namespace ddpdoctor::stacks
