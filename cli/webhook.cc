// SPDX-License-Identifier: Apache-2.0
#include "cli/webhook.h"

#include <chrono>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "collector/nodes/child.h"
#include "collector/transport/server_address.h"

namespace ddpdoctor::cli {
namespace {

constexpr std::chrono::milliseconds kLimit{15000};
constexpr std::chrono::milliseconds kTick{20};

/// A value in a configuration of curl.
std::string for_curl(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    out += letter == '"' || letter == '\\' ? std::string{'\\', letter} : std::string(1, letter);
  }
  return out + "\"";
}

}  // namespace

std::string webhook_body(const diagnosis::Diagnosis& diagnosis) {
  std::string text = "ddpdoctor: no finding";
  if (!diagnosis.findings.empty()) {
    const detectors::Finding& first = diagnosis.findings.front();
    text = fmt::format("*ddpdoctor: {}* ({})\n{}\nfix: {}", first.kind,
                       detectors::confidence_name(first.confidence), first.summary, first.fix);
  }
  return nlohmann::json{{"text", text}}.dump(-1, ' ', false,
                                             nlohmann::json::error_handler_t::replace);
}

base::Result<void> send_webhook(const std::string& file, const diagnosis::Diagnosis& diagnosis) {
  const std::string url = TRY(transport::secret_of(file, "--webhook-file"));
  auto curl = nodes::Child::start({"curl", "--silent", "--show-error", "--fail", "--config", "-"});
  if (!curl) {
    return base::failure("--webhook-file: curl cannot be started", "apt-get install curl");
  }
  curl->write(
      fmt::format("url = {}\nheader = \"Content-Type: application/json\"\nmax-time = 10\n"
                  "data-raw = {}\noutput = \"/dev/null\"\n",
                  for_curl(url), for_curl(webhook_body(diagnosis))));
  curl->close_input();
  const auto until = std::chrono::steady_clock::now() + kLimit;
  auto status = curl->ended();
  while (!status && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kTick);
    status = curl->ended();
  }
  if (!status || nodes::status_of(*status) != 0) {
    return base::failure(fmt::format("--webhook-file {}: the message was not taken (curl: {})",
                                     file, status ? nodes::status_of(*status) : -1));
  }
  return {};
}

}  // namespace ddpdoctor::cli
