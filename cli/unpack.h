// SPDX-License-Identifier: Apache-2.0
// One archive → files in a folder. With libarchive, or, where a build has none, not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Between the name of an archive and that of a file in it.
inline constexpr std::string_view kInside = ": ";

struct UnpackBounds {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
  int folders = 0;
  int filters = 0;
};

struct Unpacked {
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};

/// Writes regular files only, each below `folder`: links, devices and names that lead elsewhere are
/// left out. The error is the reason alone.
base::Result<Unpacked> unpack(const std::string& archive, const std::string& folder,
                              const UnpackBounds& bounds);

}  // namespace ddpdoctor::cli
