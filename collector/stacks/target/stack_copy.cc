// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/stack_copy.h"

#include <algorithm>
#include <cstring>

namespace ddpdoctor::stacks {

bool StackCopy::take(RemoteAddress stack_pointer, const Maps& maps) {
  constexpr RemoteAddress kRedZone =
      128;  // System V ABI: a leaf function may use this many bytes below the stack pointer
  size_ = 0;
  went_outside_ = false;
  const Mapping* const mapping = maps.find(stack_pointer);
  if (mapping == nullptr || !mapping->readable) {
    return false;
  }
  start_ = std::max(mapping->start, stack_pointer - std::min(stack_pointer, kRedZone));
  const std::size_t length = std::min<std::uint64_t>(bytes_.size(), mapping->end - start_);
  size_ = live_.copy(start_, std::span(bytes_).first(length));
  return size_ > stack_pointer - start_;
}

bool StackCopy::contains(RemoteAddress address, std::size_t length) const {
  return address >= start_ && address - start_ <= size_ && length <= size_ - (address - start_);
}

bool StackCopy::read(RemoteAddress address, std::span<std::byte> into) {
  if (contains(address, into.size())) {
    std::memcpy(into.data(), bytes_.data() + (address - start_), into.size());
    return true;
  }
  went_outside_ = true;
  return live_.read(address, into);
}

}  // namespace ddpdoctor::stacks
