// SPDX-License-Identifier: Apache-2.0
#include "collector/stacks/target/live_memory.h"

#include <algorithm>
#include <cstring>

#include <sys/uio.h>

namespace ddpdoctor::stacks {

namespace {

constexpr std::size_t kMaxCachedPages = 2048;  // 8 MiB
constexpr std::size_t kUncachedFrom = 16 * kPageSize;
constexpr std::size_t kSpan = 1024;        // IOV_MAX
constexpr std::size_t kMostExpected = 64;  // pages of one call; more per call are not faster

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

std::unique_ptr<LiveMemory::Page> LiveMemory::empty_page() {
  if (spare_.empty()) {
    return std::make_unique<Page>();
  }
  std::unique_ptr<Page> page = std::move(spare_.back());
  spare_.pop_back();
  return page;
}

std::size_t LiveMemory::fetch(std::span<const RemoteAddress> wanted) {
  std::array<std::unique_ptr<Page>, kMostExpected> pages;
  std::array<iovec, kMostExpected> local{};
  std::array<iovec, kMostExpected> remote{};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    pages[i] = empty_page();
    local[i] = {.iov_base = pages[i]->data(), .iov_len = kPageSize};
    remote[i] = {.iov_base = reinterpret_cast<void*>(wanted[i]), .iov_len = kPageSize};  // NOLINT
  }
  const ssize_t got =
      ::process_vm_readv(pid_, local.data(), wanted.size(), remote.data(), wanted.size(), 0);
  const std::size_t whole = got > 0 ? static_cast<std::size_t>(got) / kPageSize : 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (i < whole) {
      pages_.emplace(wanted[i], Cached{.content = std::move(pages[i])});
    } else {
      spare_.push_back(std::move(pages[i]));
    }
  }
  return whole;
}

void LiveMemory::expect(std::span<const RemoteAddress> addresses) {
  std::vector<RemoteAddress> wanted;
  wanted.reserve(addresses.size());
  for (const RemoteAddress address : addresses) {
    if (address != 0 && !pages_.contains(page_of(address))) {
      wanted.push_back(page_of(address));
    }
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  if (wanted.size() < 2 || pages_.size() + wanted.size() > kMaxCachedPages) {
    return;  // page() reads one as fast
  }
  std::span<const RemoteAddress> rest = wanted;
  while (!rest.empty()) {
    const auto some = rest.first(std::min(rest.size(), kMostExpected));
    const std::size_t read = fetch(some);
    rest = rest.subspan(std::min(rest.size(), read < some.size() ? read + 1 : read));
  }
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
    std::unique_ptr<Page> fresh = empty_page();
    if (copy(address, *fresh) != kPageSize) {
      spare_.push_back(std::move(fresh));
      return nullptr;
    }
    found = pages_.emplace(address, Cached{.content = std::move(fresh)}).first;
  }
  found->second.used = true;
  last_address_ = address;
  last_page_ = found->second.content.get();
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

std::vector<RemoteAddress> LiveMemory::used() const {
  std::vector<RemoteAddress> addresses;
  for (const auto& [address, page] : pages_) {
    if (page.used) {
      addresses.push_back(address);
    }
  }
  return addresses;
}

void LiveMemory::forget() {
  for (auto& [address, page] : pages_) {
    if (spare_.size() < kMaxCachedPages / 16) {
      spare_.push_back(std::move(page.content));
    }
  }
  pages_.clear();
  last_address_ = ~RemoteAddress{0};
  last_page_ = nullptr;
}

}  // namespace ddpdoctor::stacks
