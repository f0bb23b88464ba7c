// SPDX-License-Identifier: Apache-2.0
// Received messages that are not read yet. When it is full, the oldest are dropped.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "collector/transport/transport.h"

namespace ddpdoctor::transport {

class Inbox {
 public:
  void put(Packet packet);
  std::optional<Packet> take(std::chrono::milliseconds limit);
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

  mutable std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Packet> packets_;
  std::size_t bytes_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace ddpdoctor::transport
