// SPDX-License-Identifier: Apache-2.0
#include "collector/transport/server_address.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/unique_fd.h"

namespace ddpdoctor::transport {
namespace {

constexpr std::size_t kLongestFile = 65536;

base::Result<std::string> small_file(const std::string& path, const std::string& what) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  std::string text(kLongestFile, '\0');
  const ssize_t length = file ? ::read(file.get(), text.data(), text.size()) : -1;
  if (length < 0) {
    return base::failure(fmt::format("{} {}: {}", what, path, std::strerror(errno)));
  }
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// The file in which the nats command-line tool keeps the context of this name.
std::string context_path(const std::string& context) {
  if (context.find('/') != std::string::npos) {
    return context;
  }
  // NOLINTBEGIN(concurrency-mt-unsafe): no code here calls setenv
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  const char* const home = std::getenv("HOME");
  // NOLINTEND(concurrency-mt-unsafe)
  const std::string folder = config != nullptr && *config == '/'
                                 ? std::string(config)
                                 : std::string(home != nullptr ? home : "") + "/.config";
  return folder + "/nats/context/" + context + ".json";
}

}  // namespace

base::Result<void> check(const ServerAddress& address) {
  for (const std::string_view url : base::split(address.url, ',')) {
    const std::size_t scheme = url.find("://");
    const std::string_view host = scheme == std::string_view::npos ? url : url.substr(scheme + 3);
    const std::string_view kind = url.substr(0, scheme == std::string_view::npos ? 0 : scheme);
    if (host.empty() || (!kind.empty() && kind != "nats" && kind != "tls")) {
      return base::failure(fmt::format("--nats {}: not the address of a NATS server", url),
                           "expected an address such as nats://head:4222");
    }
    if (host.find('@') != std::string_view::npos) {
      return base::failure(
          "--nats: the address holds a password, which every user of this machine "
          "can read in the list of processes",
          "put it into a file: --nats-token-file or --nats-user-file");
    }
  }
  if (address.certificate.empty() != address.key.empty()) {
    return base::failure("--nats-cert and --nats-key need each other");
  }
  return {};
}

base::Result<ServerAddress> with_context(ServerAddress address, const std::string& context) {
  const std::string path = context_path(context);
  const std::string text = TRY(small_file(path, "--nats-context"));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return base::failure(fmt::format("--nats-context {}: not a context of the nats tool", path),
                         "nats context ls shows what there is");
  }
  const auto fill = [&json](std::string& field, const char* name) {
    const auto found = json.find(name);
    if (field.empty() && found != json.end() && found->is_string()) {
      field = found->get<std::string>();
    }
  };
  fill(address.url, "url");
  fill(address.credentials, "creds");
  fill(address.ca, "ca");
  fill(address.certificate, "cert");
  fill(address.key, "key");
  for (const char* const name : {"token", "password", "nkey"}) {
    const auto found = json.find(name);
    if (found != json.end() && found->is_string() && !found->get<std::string>().empty()) {
      return base::failure(
          fmt::format("--nats-context {}: a context with a {} is not supported", path, name),
          "put it into a file: --nats-token-file, --nats-user-file or --nats-creds");
    }
  }
  return address;
}

base::Result<std::string> secret_of(const std::string& path, const std::string& what) {
  const std::string text = TRY(small_file(path, what));
  const std::string line(base::trim(text.substr(0, text.find('\n'))));
  if (line.empty()) {
    return base::failure(fmt::format("{} {}: the file is empty", what, path));
  }
  return line;
}

}  // namespace ddpdoctor::transport
