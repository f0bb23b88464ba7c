// SPDX-License-Identifier: Apache-2.0
// A connection to a NATS server. It comes back by itself after the server was away; what was kept
// is kept by the server's JetStream, where it has one.
#pragma once

#include <memory>
#include <string>

#include "collector/transport/server_address.h"
#include "collector/transport/transport.h"

namespace ddpdoctor::transport {

/// Whether this build of ddpdoctor has a NATS client, and the machine its library; the error says
/// what to do.
base::Result<void> nats_usable();

/// Connects within two seconds, or says why not. `name` is how the server's lists call us.
base::Result<std::unique_ptr<Transport>> connect_to_nats(const ServerAddress& address,
                                                         const std::string& name);

}  // namespace ddpdoctor::transport
