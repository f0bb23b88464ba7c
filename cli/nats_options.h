// SPDX-License-Identifier: Apache-2.0
// --nats and related options: the same for run, collect and watch.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "collector/transport/server_address.h"

namespace CLI {
class App;
}

namespace ddpdoctor::cli {

/// As typed.
struct NatsOptions {
  transport::ServerAddress server;
  std::string context;
  std::string job;

  [[nodiscard]] bool wanted() const {
    return !server.url.empty() || !context.empty();
  }
  /// `--nats embedded`: the node of rank 0 starts the server.
  [[nodiscard]] bool embedded() const {
    return server.url == "embedded";
  }
};

/// `url_help` describes --nats for the command.
void declare_nats(CLI::App& app, NatsOptions& options, const std::string& url_help);

/// Refuses invalid options, and a build or machine without NATS; fills in the context.
base::Result<void> complete(NatsOptions& options);

/// The same options for another ddpdoctor with another address. Contains no secret.
std::vector<std::string> words_of(const NatsOptions& options, const std::string& url,
                                  const std::string& job);

}  // namespace ddpdoctor::cli
