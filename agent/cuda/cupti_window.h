// SPDX-License-Identifier: Apache-2.0
// The window in which CUPTI is used if DDPDOCTOR_CUPTI requests it: 1 = while a call of NCCL has
// made no progress for some time, always = from the first call on. The agent becomes CUPTI's user
// at the first call in both cases: later, cuptiSubscribe would wait for the GPU that makes none.
#pragma once

#include <cstdint>

#include "wire/layout.h"

namespace ddpdoctor::agent::cupti {

/// Called repeatedly by the thread that watches the GPU's events. `unmoved_since`: when the oldest
/// unfinished call became the oldest, 0 = all are finished.
void consider_window(wire::Ring& ring, std::uint64_t unmoved_since);

}  // namespace ddpdoctor::agent::cupti
