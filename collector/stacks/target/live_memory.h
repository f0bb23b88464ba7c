// SPDX-License-Identifier: Apache-2.0
// Memory of a running process through process_vm_readv: no thread is stopped, nothing is written.
// Small reads use a page cache; callers that need current data call forget() first.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
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

  bool read_now(RemoteAddress address, std::span<std::byte> into) override {
    return copy(address, into) == into.size();
  }

  /// Caches the pages of these addresses that are not cached yet, many with one system call: a page
  /// costs a third of a call of its own. Addresses that cannot be read are left out.
  void expect(std::span<const RemoteAddress> addresses) override;

  /// Copies the readable part of the range from its start, bypassing the cache; returns the number
  /// of bytes. Reads page by page, because the kernel fails a whole request that reaches a guard
  /// page (glibc 2.42 has stacks and guards in one mapping).
  std::size_t copy(RemoteAddress address, std::span<std::byte> into);

  /// The cached pages that reads have used.
  [[nodiscard]] std::vector<RemoteAddress> used() const;

  /// Drops cached pages: later reads return current data.
  void forget() override;

 private:
  using Page = std::array<std::byte, kPageSize>;
  struct Cached {
    std::unique_ptr<Page> content;
    bool used = false;
  };

  const Page* page(RemoteAddress address);
  std::unique_ptr<Page> empty_page();
  /// Reads whole pages in order until one cannot be read; returns their number.
  std::size_t fetch(std::span<const RemoteAddress> wanted);

  pid_t pid_;
  std::unordered_map<RemoteAddress, Cached> pages_;
  std::vector<std::unique_ptr<Page>> spare_;
  RemoteAddress last_address_ = ~RemoteAddress{0};
  const Page* last_page_ = nullptr;
};

}  // namespace ddpdoctor::stacks
