// SPDX-License-Identifier: Apache-2.0
// Large blocks of the target, each read at once.
#include "collector/stacks/target/preloaded_memory.h"

#include <algorithm>
#include <utility>

namespace ddpdoctor::stacks {

bool PreloadedMemory::preload(RemoteAddress address, std::size_t length) {
  Block block{.start = address, .bytes = std::vector<std::byte>(length)};
  if (!memory_.read(address, block.bytes)) {
    return false;
  }
  blocks_.push_back(std::move(block));
  return true;
}

bool PreloadedMemory::read(RemoteAddress address, std::span<std::byte> into) {
  for (const Block& block : blocks_) {
    const RemoteAddress offset = address - block.start;
    if (offset <= block.bytes.size() && into.size() <= block.bytes.size() - offset) {
      std::copy_n(block.bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(),
                  into.begin());
      return true;
    }
  }
  return memory_.read(address, into);
}

}  // namespace ddpdoctor::stacks
