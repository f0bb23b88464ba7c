// SPDX-License-Identifier: Apache-2.0
// One page over HTTP, for Prometheus: GET /metrics. It knows nothing else of HTTP, reads no more
// than the first line of a request, and serves one client after the other.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/result.h"
#include "base/unique_fd.h"

namespace ddpdoctor::cli {

class MetricsServer {
 public:
  /// Listens at "[HOST]:PORT" or "PORT"; without a host, at all addresses.
  static base::Result<std::unique_ptr<MetricsServer>> listen(const std::string& address);
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  MetricsServer(MetricsServer&&) = delete;
  MetricsServer& operator=(MetricsServer&&) = delete;
  ~MetricsServer();

  /// What the next client gets.
  void show(std::string page);
  /// Where it listens, when port 0 was asked for.
  [[nodiscard]] int port() const {
    return port_;
  }

 private:
  MetricsServer(base::UniqueFd socket, int port);
  void work();
  void serve(int client);

  base::UniqueFd socket_;
  int port_;
  std::mutex mutex_;
  std::string page_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace ddpdoctor::cli
