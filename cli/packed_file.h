// SPDX-License-Identifier: Apache-2.0
// Archives and compressed files, which are not unpacked here, because their content may have any
// size.
#pragma once

#include <optional>
#include <string_view>

namespace ddpdoctor::cli {

/// How a file is packed, and the command that unpacks it.
struct Packed {
  std::string_view how;
  std::string_view unpack;
};

/// Nothing if the file does not begin like an archive; files of torch.save() do not count.
std::optional<Packed> packed(std::string_view head);

}  // namespace ddpdoctor::cli
