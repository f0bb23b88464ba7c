// SPDX-License-Identifier: Apache-2.0
// The functions of CUDA that the agent interposes. Several runtimes may be loaded in one process:
// each version of a function has its own replacement ("door"), which passes calls on to that
// version.
#pragma once

#include <cstdint>

namespace ddpdoctor::agent {

/// Numbers of cuda_functions.inc.
enum CudaFunction : int {
#define CUDA(id, symbol) k##symbol = id,
#include "agent/cuda/cuda_functions.inc"
#undef CUDA
  kCudaFunctions
};

inline constexpr int kCudaVersions = 4;

/// The real function behind a door; it is set before any call reaches the door.
void* real_cuda(CudaFunction function, int version);

template <typename... Parameters>
int call_cuda(CudaFunction function, int version, Parameters... arguments) {
  return reinterpret_cast<int (*)(Parameters...)>(real_cuda(function, version))(arguments...);
}

// Graphs (probe_graphs.cc). Two APIs share one name: five arguments since CUDA 10, three since 12.
// All fit into registers.
int instantiate_graph(CudaFunction function, int version, void** executable, void* graph,
                      std::uint64_t a, std::uint64_t b, std::uint64_t c);
int launch_graph(int version, void* executable, void* stream);

}  // namespace ddpdoctor::agent
