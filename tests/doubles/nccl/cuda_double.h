// SPDX-License-Identifier: Apache-2.0
// What the doubles of CUDA and NCCL use of each other.
#pragma once

#include <functional>

namespace ddpdoctor::doubles {

/// Runs `work` on the stream's thread after everything queued before it, as the kernel of this
/// name. While the stream is being captured, it becomes part of the graph instead.
void enqueue(void* stream, std::function<void()> work, const char* kernel);

/// Receives the driver's calls and the kernels that ended: the double of CUPTI.
struct Observer {
  void (*call)(int function, bool leaves, const char* name, const void* arguments,
               const char* kernel, unsigned correlation);
  void (*kernel_ended)(unsigned correlation);
};

}  // namespace ddpdoctor::doubles

extern "C" void double_observe(const ddpdoctor::doubles::Observer* observer);
