// SPDX-License-Identifier: Apache-2.0
// Large blocks of the target, each read at once; other reads go to the underlying memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

/// Another memory with some blocks of it copied: a snapshot of these blocks.
class PreloadedMemory : public RemoteMemory {
 public:
  /// `memory` must outlive this.
  explicit PreloadedMemory(RemoteMemory& memory) : memory_(memory) {}

  bool read(RemoteAddress address, std::span<std::byte> into) override;

  /// Copies a block with one read; false if it cannot be read.
  bool preload(RemoteAddress address, std::size_t length);

 private:
  struct Block {
    RemoteAddress start = 0;
    std::vector<std::byte> bytes;
  };

  RemoteMemory& memory_;
  std::vector<Block> blocks_;
};

}  // namespace ddpdoctor::stacks
