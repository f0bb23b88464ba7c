// SPDX-License-Identifier: Apache-2.0
#include "cli/webhook.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/curl.h"
#include "collector/transport/server_address.h"

namespace ddpdoctor::cli {
namespace {

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
  // The address is a secret: it must not be in the command line.
  return run_curl(fmt::format("--webhook-file {}", file), {"--config", "-"},
                  fmt::format("url = {}\nheader = \"Content-Type: application/json\"\n"
                              "data-raw = {}\n",
                              for_curl(url), for_curl(webhook_body(diagnosis))));
}

}  // namespace ddpdoctor::cli
