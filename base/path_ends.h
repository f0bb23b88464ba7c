// SPDX-License-Identifier: Apache-2.0
// The ends of paths by which modules are known, wherever they are installed.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace ddpdoctor::base {

/// True if `path` ends with `suffix` at a folder boundary: "mydistributed.py" does not end with
/// "distributed.py". multiprocess (of pathos and datasets) and billiard (of celery) are copies of
/// multiprocessing and count as it.
inline bool path_ends_with(std::string_view path, std::string_view suffix) {
  constexpr std::string_view kCopied = "multiprocessing/";
  constexpr std::array<std::string_view, 2> kCopies = {"multiprocess", "billiard"};
  const auto ends = [](std::string_view whole, std::string_view part) {
    const std::size_t before = whole.size() - part.size();
    return whole.ends_with(part) &&
           (before == 0 || part.front() == '/' || whole[before - 1] == '/');
  };
  if (suffix.empty() || ends(path, suffix)) {
    return true;
  }
  if (!suffix.starts_with(kCopied)) {
    return false;
  }
  const std::string_view file = suffix.substr(kCopied.size() - 1);
  return path.ends_with(file) &&
         std::any_of(kCopies.begin(), kCopies.end(), [&](std::string_view copy) {
           return ends(path.substr(0, path.size() - file.size()), copy);
         });
}

}  // namespace ddpdoctor::base
