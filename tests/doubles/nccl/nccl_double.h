// SPDX-License-Identifier: Apache-2.0
// What the parts of the double of NCCL share: the group that a thread has open.
#pragma once

#include <functional>
#include <vector>

namespace ddpdoctor::doubles {

extern thread_local int group_depth;
/// Inits inside an open group: they run together at its end.
extern thread_local std::vector<std::function<int()>> held_inits;

}  // namespace ddpdoctor::doubles
