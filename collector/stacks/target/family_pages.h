// SPDX-License-Identifier: Apache-2.0
// The pages that the capture of a process used. A process that was forked from it, or together with
// it from a third, has its objects at the same addresses (DataLoader workers), so nearly the same
// pages are fetched there with few calls. Only addresses are kept: each process's bytes are its
// own.
#pragma once

#include <map>
#include <vector>

#include "collector/stacks/target/live_target.h"

namespace ddpdoctor::stacks {

class FamilyPages {
 public:
  /// Fetches what the relative that was captured last has used.
  void fetch(LiveTarget& target) const {
    const auto known = used_.find(family_of(target.maps()));
    if (known != used_.end()) {
      target.memory().expect(known->second);
    }
  }

  void keep(LiveTarget& target) {
    if (const RemoteAddress family = family_of(target.maps()); family != 0) {
      used_.insert_or_assign(family, target.memory().used());
    }
  }

 private:
  /// The kernel chooses the place of the vdso at exec, and fork keeps it; 0 = unknown.
  static RemoteAddress family_of(const Maps& maps) {
    for (const Mapping& mapping : maps.all()) {
      if (mapping.path == "[vdso]") {
        return mapping.start;
      }
    }
    return 0;
  }

  std::map<RemoteAddress, std::vector<RemoteAddress>> used_;
};

}  // namespace ddpdoctor::stacks
