// SPDX-License-Identifier: Apache-2.0
// Used in builds without the NATS client: static builds, and machines without its headers. Its
// error gives the reason.
#include "collector/transport/nats.h"

namespace ddpdoctor::transport {

base::Result<void> nats_usable() {
  return base::failure("--nats: this build of ddpdoctor has no NATS client",
                       "build it from source with libnats-dev and without DDPDOCTOR_STATIC; "
                       "`run --spool` on a shared folder and `attach --hosts` need no server");
}

base::Result<std::unique_ptr<Transport>> connect_to_nats(const ServerAddress& /*address*/,
                                                         const std::string& /*name*/) {
  return tl::make_unexpected(nats_usable().error());
}

}  // namespace ddpdoctor::transport
