// SPDX-License-Identifier: Apache-2.0
// Where the NATS server is and who we are to it. Secrets are read from files only: a command line
// is seen by everybody on the machine.
#pragma once

#include <string>

#include "base/result.h"

namespace ddpdoctor::transport {

/// Paths and an address; empty = not used.
struct ServerAddress {
  std::string url{};          // nats://host:4222, tls://host:4222, several with commas
  std::string credentials{};  // file that `nsc` or the operator gave (.creds)
  std::string token{};        // file that holds a token
  std::string user{};         // file that holds user:password
  std::string ca{};           // certificates of the authority that signed the server's
  std::string certificate{};  // ours, with `key`
  std::string key{};
};

/// Refuses an address that is none, and one that holds a password.
base::Result<void> check(const ServerAddress& address);

/// Fills what is empty in `address` from a context of the nats command line tool: a name, or the
/// path of its file.
base::Result<ServerAddress> with_context(ServerAddress address, const std::string& context);

/// The first line of a small file, without its end. `what` names the option for errors.
base::Result<std::string> secret_of(const std::string& path, const std::string& what);

}  // namespace ddpdoctor::transport
