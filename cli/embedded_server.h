// SPDX-License-Identifier: Apache-2.0
// The NATS server that the node of rank 0 starts for `--nats embedded`: its address, which all
// nodes can derive, and its configuration.
#pragma once

#include <string>

#include "base/result.h"
#include "collector/transport/server_address.h"

namespace ddpdoctor::cli {

/// The address of the server of `--nats embedded` for ranks with the rendezvous "ADDRESS:PORT": a
/// port that is a thousand higher, or lower if there is none.
base::Result<std::string> embedded_url(const std::string& place);

/// The path of nats-server here; empty if there is none.
std::string nats_server_program();

/// The server's configuration: its address, its folder, and the secret that `address` names.
base::Result<std::string> server_configuration(const transport::ServerAddress& address,
                                               const std::string& url, const std::string& folder);

}  // namespace ddpdoctor::cli
