// SPDX-License-Identifier: Apache-2.0
// Posts metrics to an OpenTelemetry collector every ten seconds, on a thread of its own. A
// collector that is slow or absent costs nothing: newer metrics replace those that were not sent.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/otlp_settings.h"

namespace ddpdoctor::cli {

class OtlpSender {
 public:
  static base::Result<std::unique_ptr<OtlpSender>> to(const OtlpSettings& settings);
  OtlpSender(const OtlpSender&) = delete;
  OtlpSender& operator=(const OtlpSender&) = delete;
  OtlpSender(OtlpSender&&) = delete;
  OtlpSender& operator=(OtlpSender&&) = delete;
  /// Sends what is left, for at most three seconds.
  ~OtlpSender();

  /// Metrics are wanted again.
  [[nodiscard]] bool due(double now) const {
    return now >= due_;
  }
  void send(std::string message, double now);
  /// Why the receiver takes no messages; once, until it takes one again.
  std::optional<base::Error> complaint();

 private:
  OtlpSender(std::string url, std::vector<std::string> words, base::UniqueFd headers);
  void work();
  void deliver(const std::string& message);

  std::string url_;
  std::vector<std::string> words_;  // of curl
  base::UniqueFd headers_;          // what only curl may read
  double due_ = 0;
  std::mutex mutex_;
  std::condition_variable news_;
  std::string next_;  // empty = none
  std::optional<base::Error> problem_;
  bool said_ = false;
  std::optional<std::chrono::steady_clock::time_point> ends_at_;
  std::thread thread_;  // last member, because it uses all the others
};

}  // namespace ddpdoctor::cli
