// SPDX-License-Identifier: Apache-2.0
// Reads memory of our own process through the kernel, which returns EIO where a load would crash
// the job. Uses a file: unlike with process_vm_readv, no sandbox ends a process for it, and a
// thread of the job that closes every descriptor in the meantime does no harm, because all reads
// are at an explicit offset.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddpdoctor::agent {

/// Reads during its lifetime, for which it holds one descriptor.
class SafeRead {
 public:
  SafeRead();
  SafeRead(const SafeRead&) = delete;
  SafeRead& operator=(const SafeRead&) = delete;
  SafeRead(SafeRead&&) = delete;
  SafeRead& operator=(SafeRead&&) = delete;
  ~SafeRead();

  /// False if /proc cannot be read; then every read fails.
  [[nodiscard]] bool possible() const {
    return file_ >= 0;
  }

  /// Copies `bytes` (at most a page) from `address`; false if any of them cannot be read.
  bool bytes(std::uint64_t address, void* into, std::size_t bytes);

  /// The value at `address`.
  template <typename T>
  bool value(std::uint64_t address, T& into) {
    return bytes(address, &into, sizeof into);
  }

 private:
  int file_;
};

}  // namespace ddpdoctor::agent
