// SPDX-License-Identifier: Apache-2.0
// The ends of paths by which modules are known, wherever they are installed.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace ddpdoctor::base {

/// multiprocess (of pathos and datasets) and billiard (of celery) are copies of multiprocessing and
/// count as it in all of this file.
inline constexpr std::string_view kMultiprocessing = "multiprocessing/";
inline constexpr std::array<std::string_view, 2> kCopiesOfMultiprocessing = {"multiprocess",
                                                                             "billiard"};

/// True if `path` ends with `suffix` at a folder boundary: "mydistributed.py" does not end with
/// "distributed.py".
inline bool path_ends_with(std::string_view path, std::string_view suffix) {
  const auto ends = [](std::string_view whole, std::string_view part) {
    const std::size_t before = whole.size() - part.size();
    return whole.ends_with(part) &&
           (before == 0 || part.front() == '/' || whole[before - 1] == '/');
  };
  if (suffix.empty() || ends(path, suffix)) {
    return true;
  }
  if (!suffix.starts_with(kMultiprocessing)) {
    return false;
  }
  const std::string_view file = suffix.substr(kMultiprocessing.size() - 1);
  return path.ends_with(file) &&
         std::any_of(kCopiesOfMultiprocessing.begin(), kCopiesOfMultiprocessing.end(),
                     [&](std::string_view copy) {
                       return ends(path.substr(0, path.size() - file.size()), copy);
                     });
}

/// True if `part`, a folder or a file such as "multiprocessing/pool.py", is anywhere in `path`.
inline bool path_contains(std::string_view path, std::string_view part) {
  if (path.find(part) != std::string_view::npos) {
    return true;
  }
  if (!part.starts_with(kMultiprocessing)) {
    return false;
  }
  const std::string_view rest = part.substr(kMultiprocessing.size() - 1);  // from its '/' on
  return std::any_of(
      kCopiesOfMultiprocessing.begin(), kCopiesOfMultiprocessing.end(), [&](std::string_view copy) {
        std::size_t at = path.find(copy);
        while (at != std::string_view::npos && !((at == 0 || path[at - 1] == '/') &&
                                                 path.substr(at + copy.size()).starts_with(rest))) {
          at = path.find(copy, at + 1);
        }
        return at != std::string_view::npos;
      });
}

}  // namespace ddpdoctor::base
