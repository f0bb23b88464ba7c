// SPDX-License-Identifier: Apache-2.0
#include "cli/otlp_sender.h"

#include <utility>

#include <fmt/format.h>

#include "cli/curl.h"

namespace ddpdoctor::cli {
namespace {

constexpr double kEvery = 10;  // seconds
constexpr std::chrono::seconds kLastMessage{3};
constexpr const char* kPath = "/v1/metrics";

}  // namespace

base::Result<std::unique_ptr<OtlpSender>> OtlpSender::to(const std::string& url) {
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return base::failure(fmt::format("--otlp {}: not an address", url),
                         "expected http://HOST:4318 or https://HOST:4318");
  }
  std::string whole = url;
  while (whole.ends_with('/')) {
    whole.pop_back();
  }
  whole += whole.ends_with(kPath) ? "" : kPath;
  return std::unique_ptr<OtlpSender>(new OtlpSender(std::move(whole)));
}

OtlpSender::OtlpSender(std::string url) : url_(std::move(url)), thread_([this] { work(); }) {}

OtlpSender::~OtlpSender() {
  {
    const std::scoped_lock lock(mutex_);
    ends_at_ = std::chrono::steady_clock::now() + kLastMessage;
  }
  news_.notify_one();
  thread_.join();
}

void OtlpSender::send(std::string message, double now) {
  due_ = now + kEvery;
  {
    const std::scoped_lock lock(mutex_);
    next_ = std::move(message);
  }
  news_.notify_one();
}

std::optional<base::Error> OtlpSender::complaint() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(said_, problem_.has_value()) ? std::nullopt : problem_;
}

void OtlpSender::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [this] { return ends_at_ || !next_.empty(); });
    if (next_.empty() || (ends_at_ && problem_)) {
      return;
    }
    const std::string message = std::exchange(next_, {});
    lock.unlock();
    deliver(message);
    lock.lock();
  }
}

void OtlpSender::deliver(const std::string& message) {
  const auto stop = [this] {
    const std::scoped_lock lock(mutex_);
    return ends_at_ && std::chrono::steady_clock::now() > *ends_at_;
  };
  const auto taken =
      run_curl(fmt::format("--otlp {}", url_),
               {"--header", "Content-Type: application/json", "--data-binary", "@-", "--url", url_},
               message, stop);
  const std::scoped_lock lock(mutex_);
  problem_ = taken ? std::nullopt : std::optional(taken.error());
}

}  // namespace ddpdoctor::cli
