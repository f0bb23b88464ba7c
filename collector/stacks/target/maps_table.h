// SPDX-License-Identifier: Apache-2.0
// The maps of many processes for one snapshot of a job. The kernel writes several hundred lines for
// a process with torch, so each process's are read once.
#pragma once

#include <map>
#include <utility>

#include "collector/stacks/target/maps.h"

namespace ddpdoctor::stacks {

class MapsTable {
 public:
  /// As they were at the first request, or as kept; empty if they cannot be read.
  const Maps& of(pid_t pid) {
    const auto [place, fresh] = maps_.try_emplace(pid);
    if (fresh) {
      place->second = Maps::of(pid).value_or(Maps());
    }
    return place->second;
  }

  /// Takes the maps that another reader of this snapshot has read already.
  void keep(pid_t pid, Maps maps) {
    maps_.insert_or_assign(pid, std::move(maps));
  }

 private:
  std::map<pid_t, Maps> maps_;
};

}  // namespace ddpdoctor::stacks
