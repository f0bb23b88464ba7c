// SPDX-License-Identifier: Apache-2.0
// The address of the NATS server and our credentials. Secrets are read from files only: every user
// of the machine can see a command line.
#pragma once

#include <string>

#include "base/result.h"

namespace ddpdoctor::transport {

/// Paths and an address; an empty field is not used.
struct ServerAddress {
  std::string url{};          // nats://host:4222, tls://host:4222, several separated by commas
  std::string credentials{};  // file made by `nsc` or by the operator (.creds)
  std::string token{};        // file that holds a token
  std::string user{};         // file that holds user:password
  std::string ca{};           // certificates of the authority that signed the server's certificate
  std::string certificate{};  // our certificate; needs `key`
  std::string key{};
};

/// Refuses an invalid address, and one that contains a password.
base::Result<void> check(const ServerAddress& address);

/// Fills the empty fields of `address` from a context of the nats command-line tool: its name or
/// the path of its file.
base::Result<ServerAddress> with_context(ServerAddress address, const std::string& context);

/// The first line of a small file, without the line end. `what` is the option's name for errors.
base::Result<std::string> secret_of(const std::string& path, const std::string& what);

}  // namespace ddpdoctor::transport
