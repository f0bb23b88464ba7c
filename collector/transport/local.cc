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

  ObjectStore* objects() override {
    return server_.keeps_nothing_.empty() ? &server_.objects_ : nullptr;
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

base::Result<void> LocalServer::Objects::put(const ObjectInfo& about, std::string_view bytes) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(all_, [&about](const auto& one) { return one.first.name == about.name; });
  all_.emplace_back(about, bytes);
  return {};
}

base::Result<std::vector<ObjectInfo>> LocalServer::Objects::list() {
  const std::scoped_lock lock(mutex_);
  std::vector<ObjectInfo> out;
  for (const auto& [about, bytes] : all_) {
    out.push_back(about);
  }
  return out;
}

base::Result<std::string> LocalServer::Objects::get(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  for (const auto& [about, bytes] : all_) {
    if (about.name == name) {
      return bytes;
    }
  }
  return base::failure("no object has the name " + name);
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
