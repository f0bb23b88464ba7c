// SPDX-License-Identifier: Apache-2.0
// Memory of our own process read through the kernel, which answers EIO where a load would end the
// job. By a file: unlike process_vm_readv, no sandbox ends a process for reading one, and a thread
// of the job that closes every descriptor meanwhile loses nothing, since only reads at an offset
// are made.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddpdoctor::agent {

/// Reads while it lives; holds one descriptor for that time.
class SafeRead {
 public:
  SafeRead();
  SafeRead(const SafeRead&) = delete;
  SafeRead& operator=(const SafeRead&) = delete;
  SafeRead(SafeRead&&) = delete;
  SafeRead& operator=(SafeRead&&) = delete;
  ~SafeRead();

  /// False where /proc cannot be read; every read fails then.
  [[nodiscard]] bool possible() const {
    return file_ >= 0;
  }

  /// Copies `bytes` (at most a page) from `address`; false when not all of them can be read.
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
