// SPDX-License-Identifier: Apache-2.0
#include "cli/nats_options.h"

#include <array>
#include <utility>

#include <CLI/CLI.hpp>

#include "collector/transport/nats.h"

namespace ddpdoctor::cli {
namespace {

struct Row {
  const char* name;
  std::string transport::ServerAddress::* field;
  const char* help;
};

constexpr std::array<Row, 6> kFiles{{
    {"--nats-creds", &transport::ServerAddress::credentials, "file with NATS credentials (.creds)"},
    {"--nats-token-file", &transport::ServerAddress::token, "file with a token"},
    {"--nats-user-file", &transport::ServerAddress::user, "file with user:password"},
    {"--nats-ca", &transport::ServerAddress::ca, "certificate of the authority of the server"},
    {"--nats-cert", &transport::ServerAddress::certificate, "our certificate, with --nats-key"},
    {"--nats-key", &transport::ServerAddress::key, "the key of --nats-cert"},
}};

}  // namespace

void declare_nats(CLI::App& app, NatsOptions& options, const std::string& url_help) {
  const char* const group = "A job on many nodes";
  app.add_option("--nats", options.server.url, url_help)->type_name("URL")->group(group);
  app.add_option("--job", options.job,
                 "name of the job on that server; without it, the address of its rendezvous")
      ->type_name("NAME")
      ->group(group);
  app.add_option("--nats-context", options.context, "a context of the nats tool: address and files")
      ->type_name("NAME")
      ->group(group);
  for (const Row& row : kFiles) {
    app.add_option(row.name, options.server.*row.field, row.help)->type_name("FILE")->group(group);
  }
}

base::Result<void> complete(NatsOptions& options) {
  if (!options.wanted()) {
    for (const Row& row : kFiles) {
      if (!(options.server.*row.field).empty()) {
        return base::failure(std::string(row.name) + ": no server was named",
                             "add --nats nats://host:4222");
      }
    }
    return {};
  }
  if (!options.context.empty()) {
    options.server = TRY(transport::with_context(options.server, options.context));
    options.context.clear();
  }
  if (options.embedded() &&
      !(options.server.ca + options.server.certificate + options.server.credentials).empty()) {
    return base::failure("--nats embedded: this server knows no certificates",
                         "protect it with --nats-token-file or --nats-user-file");
  }
  if (auto sound = options.embedded() ? base::Result<void>() : transport::check(options.server);
      !sound) {
    return sound;
  }
  return transport::nats_usable();
}

std::vector<std::string> words_of(const NatsOptions& options, const std::string& url,
                                  const std::string& job) {
  std::vector<std::string> words{"--nats", url, "--job", job};
  for (const Row& row : kFiles) {
    if (const std::string& file = options.server.*row.field; !file.empty()) {
      words.insert(words.end(), {row.name, file});
    }
  }
  return words;
}

}  // namespace ddpdoctor::cli
