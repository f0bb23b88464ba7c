// SPDX-License-Identifier: Apache-2.0
// The used part of one thread's stack, copied at one instant, as memory.
#pragma once

#include <vector>

#include "collector/stacks/target/live_memory.h"
#include "collector/stacks/target/maps.h"

namespace ddpdoctor::stacks {

/// Holds the bytes from the stack pointer (and the red zone below it) upwards. Reads outside the
/// copy are recorded: they are from another instant, so the caller must check again that the thread
/// has not run.
class StackCopy final : public RemoteMemory {
 public:
  /// Allocates `capacity` bytes now, so that nothing is allocated while a thread is stopped.
  StackCopy(LiveMemory& live, std::size_t capacity) : live_(live), bytes_(capacity) {}

  /// Copies from `stack_pointer` to the end of its mapping, up to the capacity; false if nothing
  /// could be read.
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
