// SPDX-License-Identifier: Apache-2.0
// What the doubles of CUDA and NCCL tell each other.
#pragma once

#include <functional>

namespace ddpdoctor::doubles {

/// Runs `work` on the stream's thread after everything that was put there before; while the stream
/// is being captured, never.
void enqueue(void* stream, std::function<void()> work);

}  // namespace ddpdoctor::doubles
