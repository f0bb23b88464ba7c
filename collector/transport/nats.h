// SPDX-License-Identifier: Apache-2.0
// A connection to a NATS server. It reconnects by itself; the server's JetStream, where available,
// keeps messages.
#pragma once

#include <memory>
#include <string>

#include "collector/transport/server_address.h"
#include "collector/transport/transport.h"

namespace ddpdoctor::transport {

/// Succeeds when this build has a NATS client and the machine has its library; the error says what
/// to do.
base::Result<void> nats_usable();

/// Connects within two seconds or returns the reason. `name` is our name in the server's lists.
base::Result<std::unique_ptr<Transport>> connect_to_nats(const ServerAddress& address,
                                                         const std::string& name);

}  // namespace ddpdoctor::transport
