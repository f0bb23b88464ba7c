// SPDX-License-Identifier: Apache-2.0
#include "cli/packed_file.h"

#include <array>

namespace ddpdoctor::cli {

namespace {

struct Magic {
  std::size_t at;
  std::string_view bytes;
  Packed packed;
};

constexpr std::array<Magic, 6> kMagics = {{{0, "\x1f\x8b", {"gzip", "gunzip"}},
                                           {0,
                                            "\xfd"
                                            "7zXZ",
                                            {"xz", "unxz"}},
                                           {0, "\x28\xb5\x2f\xfd", {"zstd", "unzstd"}},
                                           {0, "BZh", {"bzip2", "bunzip2"}},
                                           {0, "PK\x03\x04", {"zip", "unzip"}},
                                           {257, "ustar", {"tar", "tar -xf"}}}};

}  // namespace

std::optional<Packed> packed(std::string_view head) {
  for (const Magic& magic : kMagics) {
    if (head.size() >= magic.at && head.substr(magic.at).starts_with(magic.bytes) &&
        head.find("/data.pkl") == std::string_view::npos) {
      return magic.packed;
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::cli
