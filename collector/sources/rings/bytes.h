// SPDX-License-Identifier: Apache-2.0
// The bytes of a ring, copied field by field and never trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace ddpdoctor::sources {

class RingBytes {
 public:
  /// `bytes` must have at least sizeof(wire::Ring) bytes.
  explicit RingBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  /// Reads a field; the offset comes from our code, never from the ring.
  template <typename T>
  [[nodiscard]] T load(std::size_t offset) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  /// A text of the pool; empty for an offset outside it.
  [[nodiscard]] std::string text(std::uint32_t offset) const;
  /// A NUL-terminated text in a field of `size` bytes.
  [[nodiscard]] std::string fixed(std::size_t offset, std::size_t size) const;
  [[nodiscard]] std::span<const std::byte> all() const {
    return bytes_;
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace ddpdoctor::sources
