// SPDX-License-Identifier: Apache-2.0
// Archives and compressed files, which are not unpacked here: what they hold may be of any size.
#pragma once

#include <optional>
#include <string_view>

namespace ddpdoctor::cli {

/// How a file is packed, and the command that unpacks it.
struct Packed {
  std::string_view how;
  std::string_view unpack;
};

/// Nothing when the beginning is that of no archive; what torch.save() wrote is none, either.
std::optional<Packed> packed(std::string_view head);

}  // namespace ddpdoctor::cli
