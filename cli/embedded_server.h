// SPDX-License-Identifier: Apache-2.0
// The NATS server that the node of rank 0 starts for `--nats embedded`: where it listens, so that
// all nodes find it without being told, and its configuration.
#pragma once

#include <string>

#include "base/result.h"
#include "collector/transport/server_address.h"

namespace ddpdoctor::cli {

/// Where the server of `--nats embedded` listens, for ranks that meet at "ADDRESS:PORT": a port
/// that is a thousand higher, or lower where there is none.
base::Result<std::string> embedded_url(const std::string& place);

/// The path of nats-server here; empty = there is none.
std::string nats_server_program();

/// What the server reads: its address, its folder, and the secret that `address` names.
base::Result<std::string> server_configuration(const transport::ServerAddress& address,
                                               const std::string& url, const std::string& folder);

}  // namespace ddpdoctor::cli
