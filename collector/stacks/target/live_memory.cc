// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/live_memory.h"

#include <algorithm>
#include <cstring>

#include <sys/uio.h>

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMaxCachedPages = 2048;  // 8 MiB
constexpr std::size_t kUncachedFrom = 16 * kPageSize;
constexpr std::size_t kSpan = 1024;  // IOV_MAX

constexpr RemoteAddress page_of(RemoteAddress address) {
  return address & ~RemoteAddress{kPageSize - 1};
}

}  // namespace

std::size_t LiveMemory::copy(RemoteAddress address, std::span<std::byte> into) {
  std::size_t done = 0;
  if (address + into.size() < address) {
    return 0;
  }
  while (done < into.size()) {
    std::array<iovec, kSpan> remote;  // NOLINT(*-member-init): 16 KiB, of which few are used
    std::size_t pieces = 0;
    std::size_t total = 0;
    while (pieces < kSpan && done + total < into.size()) {
      const RemoteAddress from = address + done + total;
      const std::size_t length =
          std::min<std::size_t>(page_of(from) + kPageSize - from, into.size() - done - total);
      // This code never dereferences an address of the target; the kernel's interface needs a
      // pointer type.
      remote[pieces++] = {.iov_base = reinterpret_cast<void*>(from), .iov_len = length};  // NOLINT
      total += length;
    }
    const iovec local{.iov_base = into.data() + done, .iov_len = total};
    const ssize_t got = ::process_vm_readv(pid_, &local, 1, remote.data(), pieces, 0);
    if (got <= 0) {
      return done;
    }
    done += static_cast<std::size_t>(got);
    if (static_cast<std::size_t>(got) < total) {
      return done;
    }
  }
  return done;
}

const LiveMemory::Page* LiveMemory::page(RemoteAddress address) {
  if (address == last_address_) {
    return last_page_;
  }
  auto found = pages_.find(address);
  if (found == pages_.end()) {
    if (pages_.size() >= kMaxCachedPages) {
      forget();
    }
    std::unique_ptr<Page> fresh;
    if (spare_.empty()) {
      fresh = std::make_unique<Page>();
    } else {
      fresh = std::move(spare_.back());
      spare_.pop_back();
    }
    if (copy(address, *fresh) != kPageSize) {
      spare_.push_back(std::move(fresh));
      return nullptr;
    }
    found = pages_.emplace(address, std::move(fresh)).first;
  }
  last_address_ = address;
  last_page_ = found->second.get();
  return last_page_;
}

bool LiveMemory::read(RemoteAddress address, std::span<std::byte> into) {
  if (address + into.size() < address) {
    return false;
  }
  if (into.size() >= kUncachedFrom) {
    return copy(address, into) == into.size();
  }
  std::size_t done = 0;
  while (done < into.size()) {
    const RemoteAddress from = address + done;
    const Page* source = page(page_of(from));
    if (source == nullptr) {
      return false;
    }
    const std::size_t inside = from - page_of(from);
    const std::size_t length = std::min(into.size() - done, kPageSize - inside);
    std::memcpy(into.data() + done, source->data() + inside, length);
    done += length;
  }
  return true;
}

void LiveMemory::forget() {
  for (auto& [address, content] : pages_) {
    if (spare_.size() < kMaxCachedPages / 16) {
      spare_.push_back(std::move(content));
    }
  }
  pages_.clear();
  last_address_ = ~RemoteAddress{0};
  last_page_ = nullptr;
}

}  // namespace ddpdoctor::stacks
