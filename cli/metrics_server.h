// SPDX-License-Identifier: Apache-2.0
// One HTTP page for Prometheus: GET /metrics. Implements no more of HTTP, reads only the first line
// of a request, and serves one client after the other.
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
  /// Listens at "[HOST]:PORT" or "PORT"; without a host, on all addresses.
  static base::Result<std::unique_ptr<MetricsServer>> listen(const std::string& address);
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;
  MetricsServer(MetricsServer&&) = delete;
  MetricsServer& operator=(MetricsServer&&) = delete;
  ~MetricsServer();

  /// Sets the page for the next clients.
  void show(std::string page);
  /// The actual port, if port 0 was requested.
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
