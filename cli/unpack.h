// SPDX-License-Identifier: Apache-2.0
// Unpacks one archive to files in a folder, with libarchive; refuses in builds without it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Separates the name of an archive from that of a file in it.
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

/// Writes only regular files, each below `folder`: omits links, devices and names that point
/// elsewhere. The error is only the reason.
base::Result<Unpacked> unpack(const std::string& archive, const std::string& folder,
                              const UnpackBounds& bounds);

}  // namespace ddpdoctor::cli
