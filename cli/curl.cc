// SPDX-License-Identifier: Apache-2.0
#include "cli/curl.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <unistd.h>

#include <fmt/format.h>

#include "collector/nodes/child.h"

namespace ddpdoctor::cli {
namespace {

constexpr std::chrono::milliseconds kLimit{15000};
constexpr std::chrono::milliseconds kTick{20};

/// "curl: (22) The requested URL returned error: 401", or its exit status.
std::string said_by_curl(int wait_status, int errors) {
  constexpr std::size_t kMost = 4096;
  std::string text(kMost, '\0');
  const ssize_t got = ::read(errors, text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  const std::size_t sentence = text.find("curl: (");
  return sentence != std::string::npos
             ? nodes::last_line(text.substr(sentence, text.find('\n', sentence) - sentence))
             : fmt::format("curl: {}", nodes::status_of(wait_status));
}

}  // namespace

base::Result<void> run_curl(std::string_view option, const std::vector<std::string>& words,
                            std::string_view input, const std::function<bool()>& stop) {
  std::vector<std::string> command{"curl",       "--silent", "--show-error", "--fail",
                                   "--max-time", "10",       "--output",     "/dev/null"};
  command.insert(command.end(), words.begin(), words.end());
  auto curl = nodes::Child::start(command);
  if (!curl) {
    return base::failure(fmt::format("{}: curl cannot be started", option), "apt-get install curl");
  }
  const auto until = std::chrono::steady_clock::now() + kLimit;
  auto status = curl->ended();
  while (!status && std::chrono::steady_clock::now() < until && !stop()) {
    input.remove_prefix(curl->write(input));
    if (input.empty()) {
      curl->close_input();
    }
    std::this_thread::sleep_for(kTick);
    status = curl->ended();
  }
  if (!status || nodes::status_of(*status) != 0) {
    return base::failure(fmt::format("{}: the message was not taken ({})", option,
                                     status ? said_by_curl(*status, curl->errors()) : "no answer"));
  }
  return {};
}

}  // namespace ddpdoctor::cli
