// SPDX-License-Identifier: Apache-2.0
#include "collector/transport/local.h"

#include <algorithm>

#include "collector/transport/inbox.h"

namespace ddpdoctor::transport {

class LocalConnection : public Transport {
 public:
  explicit LocalConnection(LocalServer& server) : server_(server) {
    const std::scoped_lock lock(server_.mutex_);
    server_.connections_.insert(this);
  }
  LocalConnection(const LocalConnection&) = delete;
  LocalConnection& operator=(const LocalConnection&) = delete;
  LocalConnection(LocalConnection&&) = delete;
  LocalConnection& operator=(LocalConnection&&) = delete;
  ~LocalConnection() override {
    const std::scoped_lock lock(server_.mutex_);
    server_.connections_.erase(this);
  }

  base::Result<void> publish(const std::string& subject, std::string_view data,
                             const std::string& reply) override {
    server_.publish({.subject = subject, .reply = reply, .data = std::string(data), .kept = false});
    return {};
  }

  base::Result<void> subscribe(const std::string& pattern) override {
    const std::scoped_lock lock(server_.mutex_);
    patterns_.push_back(pattern);
    return {};
  }

  base::Result<void> keep(const std::string& pattern) override {
    if (!server_.keeps_nothing_.empty()) {
      return base::failure(server_.keeps_nothing_);
    }
    const std::scoped_lock lock(server_.mutex_);
    server_.keeps_.push_back(pattern);
    return {};
  }

  base::Result<void> replay(const std::string& pattern) override {
    const std::scoped_lock lock(server_.mutex_);
    for (const auto& [subject, packet] : server_.kept_) {
      if (matches(pattern, subject)) {
        inbox_.put(packet);
      }
    }
    return {};
  }

  std::optional<Packet> next(std::chrono::milliseconds limit) override {
    return inbox_.take(limit);
  }

  [[nodiscard]] bool connected() const override {
    return true;
  }

  [[nodiscard]] std::uint64_t dropped() const override {
    return inbox_.dropped();
  }

  void deliver(const Packet& packet) {
    if (any_matches(patterns_, packet.subject)) {
      inbox_.put(packet);
    }
  }

  static bool any_matches(const std::vector<std::string>& patterns, const std::string& subject) {
    return std::any_of(patterns.begin(), patterns.end(), [&subject](const std::string& pattern) {
      return matches(pattern, subject);
    });
  }

 private:
  LocalServer& server_;
  std::vector<std::string> patterns_;  // under the server's lock
  Inbox inbox_;
};

std::unique_ptr<Transport> LocalServer::connect() {
  return std::make_unique<LocalConnection>(*this);
}

void LocalServer::publish(const Packet& packet) {
  const std::scoped_lock lock(mutex_);
  if (LocalConnection::any_matches(keeps_, packet.subject)) {
    kept_[packet.subject] = packet;
    kept_[packet.subject].kept = true;
  }
  for (LocalConnection* connection : connections_) {
    connection->deliver(packet);
  }
}

}  // namespace ddpdoctor::transport
