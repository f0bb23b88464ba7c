// SPDX-License-Identifier: Apache-2.0
// Memory of a running process by process_vm_readv: nobody is stopped, nothing is written. Small
// reads go through a page cache, which whoever needs the present moment drops first (forget).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::stacks {

constexpr std::size_t kPageSize = 4096;

/// A live process's memory.
class LiveMemory final : public RemoteMemory {
 public:
  explicit LiveMemory(pid_t pid) : pid_(pid) {}

  bool read(RemoteAddress address, std::span<std::byte> into) override;

  /// Copies as much of the range as is readable from its start on, past the cache; the number of
  /// bytes copied. Asks page by page, because the kernel fails a whole piece that runs into a guard
  /// page (glibc 2.42 merges stacks and guards in one mapping).
  std::size_t copy(RemoteAddress address, std::span<std::byte> into);

  /// Drops cached pages: the next reads see the present.
  void forget();

 private:
  using Page = std::array<std::byte, kPageSize>;

  const Page* page(RemoteAddress address);

  pid_t pid_;
  std::unordered_map<RemoteAddress, std::unique_ptr<Page>> pages_;
  std::vector<std::unique_ptr<Page>> spare_;
  RemoteAddress last_address_ = ~RemoteAddress{0};
  const Page* last_page_ = nullptr;
};

}  // namespace ddpdoctor::stacks
