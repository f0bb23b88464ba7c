// SPDX-License-Identifier: Apache-2.0
// A libcudart.so.12 over the simulated driver.
#include "driver.h"

// Not tail calls: these functions stay on the stack, as NVIDIA's do.
#define STAYS __asm__ volatile("" ::: "memory")

extern "C" {

int cudaStreamSynchronize(void* stream) {
  const int result = cuStreamSynchronize(stream);
  STAYS;
  return result;
}
int cudaDeviceSynchronize() {
  const int result = cuCtxSynchronize();
  STAYS;
  return result;
}
int cudaEventSynchronize(void* event) {
  const int result = cuEventSynchronize(event);
  STAYS;
  return result;
}
}
