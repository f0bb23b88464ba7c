// SPDX-License-Identifier: Apache-2.0
// A build without the NATS client: one that is linked statically, or on a machine without its
// headers. It names the reason.
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
