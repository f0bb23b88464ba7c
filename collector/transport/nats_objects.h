// SPDX-License-Identifier: Apache-2.0
// The bucket of recordings in a NATS server's object store, in the layout of NATS' ADR-20: other
// clients read it, for example `nats object get ddpdoctor NAME`. Debian's client library has no
// functions for it.
#pragma once

#include <memory>

#include "collector/transport/libnats.h"
#include "collector/transport/object_store.h"

namespace ddpdoctor::transport {

/// `stream` must outlive the result.
std::unique_ptr<ObjectStore> nats_objects(const LibNats& nats, jsCtx* stream);

}  // namespace ddpdoctor::transport
