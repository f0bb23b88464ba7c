// SPDX-License-Identifier: Apache-2.0
// Memory of a running process through process_vm_readv: no thread is stopped, nothing is written.
// Small reads use a page cache; callers that need current data call forget() first.
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

/// The memory of a running process.
class LiveMemory final : public RemoteMemory {
 public:
  explicit LiveMemory(pid_t pid) : pid_(pid) {}

  bool read(RemoteAddress address, std::span<std::byte> into) override;

  /// Copies the readable part of the range from its start, bypassing the cache; returns the number
  /// of bytes. Reads page by page, because the kernel fails a whole request that reaches a guard
  /// page (glibc 2.42 has stacks and guards in one mapping).
  std::size_t copy(RemoteAddress address, std::span<std::byte> into);

  /// Drops cached pages: later reads return current data.
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
