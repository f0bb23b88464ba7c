// SPDX-License-Identifier: Apache-2.0
// Reads another process's memory: an interface, because tests and recordings replace a running
// process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

namespace ddpdoctor::stacks {

/// An address in the target; never a pointer in our process.
using RemoteAddress = std::uint64_t;

/// Memory of one process. Reads either fill the whole span or fail.
class RemoteMemory {
 public:
  RemoteMemory() = default;
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;
  RemoteMemory(RemoteMemory&&) = delete;
  RemoteMemory& operator=(RemoteMemory&&) = delete;
  virtual ~RemoteMemory() = default;

  virtual bool read(RemoteAddress address, std::span<std::byte> into) = 0;

  /// Reads current data even if older data is cached.
  virtual bool read_now(RemoteAddress address, std::span<std::byte> into) {
    return read(address, into);
  }

  /// Says which addresses will be read next, so that a cache can fetch them together. Reads are
  /// correct without it.
  virtual void expect(std::span<const RemoteAddress> /*addresses*/) {}

  /// Drops cached data: later reads return current data.
  virtual void forget() {}

  template <typename T>
  std::optional<T> get(RemoteAddress address) {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (!read(address, std::as_writable_bytes(std::span(&value, 1)))) {
      return std::nullopt;
    }
    return value;
  }

  /// NUL-terminated text of at most `limit` bytes; nothing if unreadable or longer.
  std::optional<std::string> c_string(RemoteAddress address, std::size_t limit = 512);
};

}  // namespace ddpdoctor::stacks
