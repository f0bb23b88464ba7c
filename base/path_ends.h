// SPDX-License-Identifier: Apache-2.0
// The ends of paths by which modules are known, wherever they are installed.
#pragma once

#include <string_view>

namespace ddpdoctor::base {

/// True if `path` ends with `suffix` at a folder boundary: "mydistributed.py" does not end with
/// "distributed.py".
inline bool path_ends_with(std::string_view path, std::string_view suffix) {
  if (suffix.empty()) {
    return true;
  }
  if (!path.ends_with(suffix)) {
    return false;
  }
  const std::size_t before = path.size() - suffix.size();
  return before == 0 || suffix.front() == '/' || path[before - 1] == '/';
}

}  // namespace ddpdoctor::base
