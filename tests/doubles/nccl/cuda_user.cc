// SPDX-License-Identifier: Apache-2.0
// A library that is linked to the runtime and calls it by name, as torch's libraries do: the agent
// intercepts such calls. Python's ctypes looks the functions up in the runtime itself, where the
// agent does not see it.
#include <cstddef>

extern "C" {

int cudaSetDevice(int device);
int cudaMalloc(void** memory, std::size_t bytes);

int use_device(int device) {
  void* memory = nullptr;
  const int result = cudaSetDevice(device);
  return result != 0 ? result : cudaMalloc(&memory, 64);
}
}
