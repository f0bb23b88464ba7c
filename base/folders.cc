// SPDX-License-Identifier: Apache-2.0
#include "base/folders.h"

namespace ddpdoctor::base {

bool lies_in(std::string_view path, std::string_view folder) {
  for (std::size_t at = path.find(folder); at != std::string_view::npos && !folder.empty();
       at = path.find(folder, at + 1)) {
    const std::size_t end = at + folder.size();
    if ((at == 0 || path[at - 1] == '/') && end < path.size() && path[end] == '/') {
      return true;
    }
  }
  return false;
}

}  // namespace ddpdoctor::base
