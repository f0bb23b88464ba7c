// SPDX-License-Identifier: Apache-2.0
#include "cli/otlp_sender.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include "cli/curl.h"

namespace ddpdoctor::cli {
namespace {

constexpr double kEvery = 10;  // seconds
constexpr std::chrono::seconds kLastMessage{3};

/// Headers may be secret: they are neither in a command line nor in a file with a name.
base::Result<base::UniqueFd> headers_for_curl(const std::vector<std::string>& headers) {
  const std::string text = fmt::format("{}\n", fmt::join(headers, "\n"));
  base::UniqueFd out(::memfd_create("headers", MFD_CLOEXEC));
  if (!out || ::write(out.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return base::failure(fmt::format("--otlp: no memory for headers: {}", std::strerror(errno)));
  }
  return out;
}

}  // namespace

base::Result<std::unique_ptr<OtlpSender>> OtlpSender::to(const OtlpSettings& settings) {
  std::vector<std::string> words{"--header",      "Content-Type: application/json",
                                 "--data-binary", "@-",
                                 "--max-time",    fmt::format("{:.3f}", settings.limit)};
  const auto add = [&words](const char* option, const std::string& value) {
    if (!value.empty()) {
      words.insert(words.end(), {option, value});
    }
  };
  add("--cacert", settings.ca);
  add("--cert", settings.certificate);
  add("--key", settings.key);
  base::UniqueFd headers;
  if (!settings.headers.empty()) {
    headers = TRY(headers_for_curl(settings.headers));
    add("--header", fmt::format("@/proc/{}/fd/{}", ::getpid(), headers.get()));
  }
  add("--url", settings.url);
  return std::unique_ptr<OtlpSender>(
      new OtlpSender(settings.url, std::move(words), std::move(headers)));
}

OtlpSender::OtlpSender(std::string url, std::vector<std::string> words, base::UniqueFd headers)
    : url_(std::move(url)),
      words_(std::move(words)),
      headers_(std::move(headers)),
      thread_([this] { work(); }) {}

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
  const auto taken = run_curl(fmt::format("--otlp {}", url_), words_, message, stop);
  const std::scoped_lock lock(mutex_);
  problem_ = taken ? std::nullopt : std::optional(taken.error());
}

}  // namespace ddpdoctor::cli
