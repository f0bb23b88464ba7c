// SPDX-License-Identifier: Apache-2.0
// A library that is linked to the runtime and calls it by name, as torch's are: that is where the
// agent stands. Python's ctypes asks the runtime itself and passes it by.
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
