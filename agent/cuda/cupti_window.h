// SPDX-License-Identifier: Apache-2.0
// The diagnosis window in which CUPTI is used, when DDPDOCTOR_CUPTI asks for it: 1 = while a call
// of NCCL has not moved for a while, always = from the first call on.
#pragma once

#include <cstdint>

#include "wire/layout.h"

namespace ddpdoctor::agent::cupti {

/// Called by the thread that watches the GPU's events, over and over. `unmoved_since`: when the
/// oldest unfinished call became the oldest, 0 = none is unfinished.
void consider_window(wire::Ring& ring, std::uint64_t unmoved_since);

}  // namespace ddpdoctor::agent::cupti
