// SPDX-License-Identifier: Apache-2.0
// What the doubles of CUDA and NCCL tell each other.
#pragma once

#include <functional>

namespace ddpdoctor::doubles {

/// Runs `work` on the stream's thread after everything that was put there before, as the kernel of
/// this name; while the stream is being captured, it becomes a part of the graph.
void enqueue(void* stream, std::function<void()> work, const char* kernel);

/// Who is told of the driver's calls and of kernels that ended: the double of CUPTI.
struct Observer {
  void (*call)(int function, bool leaves, const char* name, const void* arguments,
               const char* kernel, unsigned correlation);
  void (*kernel_ended)(unsigned correlation);
};

}  // namespace ddpdoctor::doubles

extern "C" void double_observe(const ddpdoctor::doubles::Observer* observer);
