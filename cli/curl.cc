// SPDX-License-Identifier: Apache-2.0
#include "cli/curl.h"

#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "collector/nodes/child.h"

namespace ddpdoctor::cli {
namespace {

constexpr std::chrono::milliseconds kLimit{15000};
constexpr std::chrono::milliseconds kTick{20};

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
    return base::failure(fmt::format("{}: the message was not taken (curl: {})", option,
                                     status ? nodes::status_of(*status) : -1));
  }
  return {};
}

}  // namespace ddpdoctor::cli
