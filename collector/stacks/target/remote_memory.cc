// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/remote_memory.h"

#include <algorithm>
#include <array>

namespace ddpdoctor::stacks {

std::optional<std::string> RemoteMemory::c_string(RemoteAddress address, std::size_t limit) {
  // Never reads across a page boundary at once: the next page may be absent although the text ends
  // before it.
  constexpr std::size_t kPage = 4096;
  std::array<std::byte, 256> chunk{};
  std::string text;
  while (text.size() < limit) {
    const std::size_t to_page_end = kPage - (address + text.size()) % kPage;
    const std::size_t length = std::min({chunk.size(), to_page_end, limit - text.size()});
    if (!read(address + text.size(), std::span(chunk).first(length))) {
      return std::nullopt;
    }
    for (std::size_t i = 0; i < length; ++i) {
      if (chunk[i] == std::byte{0}) {
        return text;
      }
      text += static_cast<char>(chunk[i]);
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::stacks
