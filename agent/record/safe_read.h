// SPDX-License-Identifier: Apache-2.0
// Memory of our own process read through the kernel, which answers EFAULT where a load would end
// the job. A pipe does it: unlike process_vm_readv, no sandbox ends a process for using one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddpdoctor::agent {

/// Reads while it lives; holds two descriptors for that time.
class SafeRead {
 public:
  SafeRead();
  SafeRead(const SafeRead&) = delete;
  SafeRead& operator=(const SafeRead&) = delete;
  SafeRead(SafeRead&&) = delete;
  SafeRead& operator=(SafeRead&&) = delete;
  ~SafeRead();

  /// False where no pipe could be had; every read fails then.
  [[nodiscard]] bool possible() const {
    return ends_[0] >= 0;
  }

  /// Copies `bytes` (at most a page) from `address`; false when not all of them can be read.
  bool bytes(std::uint64_t address, void* into, std::size_t bytes);

  /// The value at `address`.
  template <typename T>
  bool value(std::uint64_t address, T& into) {
    return bytes(address, &into, sizeof into);
  }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace ddpdoctor::agent
