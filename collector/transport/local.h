// SPDX-License-Identifier: Apache-2.0
// A transport inside one process, which tests use instead of a server.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collector/transport/transport.h"

namespace ddpdoctor::transport {

class LocalConnection;

/// A server inside one process. Connections must not outlive it.
class LocalServer {
 public:
  LocalServer() = default;
  /// A server that keeps no message, as one without JetStream; `keep` fails for this reason.
  explicit LocalServer(std::string keeps_nothing) : keeps_nothing_(std::move(keeps_nothing)) {}
  /// Another connection to it.
  std::unique_ptr<Transport> connect();

 private:
  friend class LocalConnection;

  class Objects : public ObjectStore {
   public:
    base::Result<void> put(const ObjectInfo& about, std::string_view bytes) override;
    base::Result<std::vector<ObjectInfo>> list() override;
    base::Result<std::string> get(const std::string& name) override;

   private:
    std::mutex mutex_;
    std::vector<std::pair<ObjectInfo, std::string>> all_;  // the oldest first
  };

  void publish(const Packet& packet);

  std::string keeps_nothing_;
  std::mutex mutex_;
  std::set<LocalConnection*> connections_;
  std::vector<std::string> keeps_;
  std::map<std::string, Packet> kept_;
  Objects objects_;
};

}  // namespace ddpdoctor::transport
