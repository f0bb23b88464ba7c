// SPDX-License-Identifier: Apache-2.0
// The used part of one thread's stack, copied at one instant, read as memory.
#pragma once

#include <vector>

#include "collector/stacks/target/live_memory.h"
#include "collector/stacks/target/maps.h"

namespace ddpdoctor::stacks {

/// Bytes from the stack pointer (and the red zone below it) upwards. Reads elsewhere are told: they
/// saw another instant, so whoever captured must check again that the thread has not moved.
class StackCopy final : public RemoteMemory {
 public:
  /// Makes room for `capacity` bytes now, so that copying while a thread stands still is only
  /// copying.
  StackCopy(LiveMemory& live, std::size_t capacity) : live_(live), bytes_(capacity) {}

  /// Copies from `stack_pointer` to the end of its mapping, at most the capacity; false when
  /// nothing could be read.
  bool take(RemoteAddress stack_pointer, const Maps& maps);

  bool read(RemoteAddress address, std::span<std::byte> into) override;

  [[nodiscard]] bool contains(RemoteAddress address, std::size_t length) const;
  [[nodiscard]] bool went_outside() const {
    return went_outside_;
  }
  [[nodiscard]] RemoteAddress end() const {
    return start_ + size_;
  }

 private:
  LiveMemory& live_;
  std::vector<std::byte> bytes_;
  RemoteAddress start_ = 0;
  std::size_t size_ = 0;
  bool went_outside_ = false;
};

}  // namespace ddpdoctor::stacks
