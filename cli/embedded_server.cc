// SPDX-License-Identifier: Apache-2.0
#include "cli/embedded_server.h"

#include <charconv>
#include <cstdlib>
#include <unistd.h>

#include <fmt/format.h>

namespace ddpdoctor::cli {
namespace {

constexpr int kPortsApart = 1000;
constexpr int kLastPort = 65535;

/// A string of the server's configuration.
std::string configured(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    out += letter == '"' || letter == '\\' ? std::string{'\\', letter} : std::string(1, letter);
  }
  return out + "\"";
}

}  // namespace

base::Result<std::string> embedded_url(const std::string& place) {
  const std::size_t colon = place.rfind(':');
  const std::string address = place.substr(0, colon);
  int port = 0;
  if (colon != std::string::npos) {
    std::from_chars(place.data() + colon + 1, place.data() + place.size(), port);
  }
  if (address.empty() || port <= 0 || port > kLastPort) {
    return base::failure(
        "--nats embedded: the ranks have no MASTER_ADDR and MASTER_PORT in their "
        "environment",
        "name a server instead: --nats nats://host:4222");
  }
  const bool v6 = address.find(':') != std::string::npos;
  return fmt::format("nats://{}{}{}:{}", v6 ? "[" : "", address, v6 ? "]" : "",
                     port + kPortsApart <= kLastPort ? port + kPortsApart : port - kPortsApart);
}

std::string nats_server_program() {
  // Debian installs it in a folder that only root's PATH contains.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no code here calls setenv
  const char* const path = std::getenv("PATH");
  std::string folders = fmt::format("{}:/usr/sbin:/usr/local/sbin:", path != nullptr ? path : "");
  for (std::size_t colon = folders.find(':'); colon != std::string::npos;
       colon = folders.find(':')) {
    const std::string program = folders.substr(0, colon) + "/nats-server";
    folders.erase(0, colon + 1);
    if (::access(program.c_str(), X_OK) == 0) {
      return program;
    }
  }
  return {};
}

base::Result<std::string> server_configuration(const transport::ServerAddress& address,
                                               const std::string& url, const std::string& folder) {
  std::string out = fmt::format("port: {}\njetstream {{ store_dir: {} }}\n",
                                url.substr(url.rfind(':') + 1), configured(folder));
  if (!address.token.empty()) {
    const std::string token = TRY(transport::secret_of(address.token, "--nats-token-file"));
    out += fmt::format("authorization {{ token: {} }}\n", configured(token));
  } else if (!address.user.empty()) {
    const std::string both = TRY(transport::secret_of(address.user, "--nats-user-file"));
    const std::size_t colon = both.find(':');
    out += fmt::format("authorization {{ user: {}, password: {} }}\n",
                       configured(both.substr(0, colon)),
                       configured(colon == std::string::npos ? "" : both.substr(colon + 1)));
  }
  return out;
}

}  // namespace ddpdoctor::cli
