// SPDX-License-Identifier: Apache-2.0
#include "collector/transport/inbox.h"

#include <utility>

namespace ddpdoctor::transport {
namespace {

std::size_t bytes_of(const Packet& packet) {
  return sizeof(Packet) + packet.subject.size() + packet.reply.size() + packet.data.size();
}

}  // namespace

void Inbox::put(Packet packet) {
  {
    const std::scoped_lock lock(mutex_);
    bytes_ += bytes_of(packet);
    packets_.push_back(std::move(packet));
    while (bytes_ > kMostBytes && packets_.size() > 1) {
      bytes_ -= bytes_of(packets_.front());
      packets_.pop_front();
      ++dropped_;
    }
  }
  came_.notify_one();
}

std::optional<Packet> Inbox::take(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  if (!came_.wait_for(lock, limit, [this] { return !packets_.empty(); })) {
    return std::nullopt;
  }
  Packet packet = std::move(packets_.front());
  packets_.pop_front();
  bytes_ -= bytes_of(packet);
  return packet;
}

std::uint64_t Inbox::dropped() const {
  const std::scoped_lock lock(mutex_);
  return dropped_;
}

}  // namespace ddpdoctor::transport
