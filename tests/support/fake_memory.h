// SPDX-License-Identifier: Apache-2.0
// A target's memory that tests write byte by byte: ranges at chosen addresses, everything else
// unreadable.
#pragma once

#include <cstring>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "collector/stacks/target/remote_memory.h"

namespace ddpdoctor::test {

/// Ranges must not overlap; a read must lie within one.
class FakeMemory : public stacks::RemoteMemory {
 public:
  bool read(stacks::RemoteAddress address, std::span<std::byte> into) override {
    ++reads;
    if (into.empty()) {
      return true;
    }
    const auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) {
      return false;
    }
    const auto& [start, bytes] = *std::prev(after);
    const std::size_t offset = address - start;
    if (offset > bytes.size() || into.size() > bytes.size() - offset) {
      return false;
    }
    std::memcpy(into.data(), bytes.data() + offset, into.size());
    return true;
  }

  /// A new zeroed range.
  void map(stacks::RemoteAddress address, std::size_t length) {
    ranges_[address].resize(length);
  }

  void map(stacks::RemoteAddress address, std::vector<std::byte> bytes) {
    ranges_[address] = std::move(bytes);
  }

  /// Writes inside a mapped range; ignored elsewhere.
  void write(stacks::RemoteAddress address, std::span<const std::byte> bytes) {
    const auto after = ranges_.upper_bound(address);
    if (after == ranges_.begin()) {
      return;
    }
    auto& [start, range] = *std::prev(after);
    if (address - start + bytes.size() <= range.size()) {
      std::memcpy(range.data() + (address - start), bytes.data(), bytes.size());
    }
  }

  template <typename T>
  void put(stacks::RemoteAddress address, const T& value) {
    write(address, std::as_bytes(std::span(&value, 1)));
  }

  void put_text(stacks::RemoteAddress address, std::string_view text) {
    write(address, std::as_bytes(std::span(text)));
  }

  int reads = 0;

 private:
  std::map<stacks::RemoteAddress, std::vector<std::byte>> ranges_;
};

}  // namespace ddpdoctor::test
