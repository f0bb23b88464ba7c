// SPDX-License-Identifier: Apache-2.0
// A libcudart.so.13 over the double of the driver. For tests.
#include <cstdlib>
#include <cstring>

extern "C" {

void double_use_device();
int cuMemFree_v2(void* memory);
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamSynchronize(void* stream);
int cuStreamBeginCapture_v2(void* stream, int mode);
int cuStreamEndCapture(void* stream, void** graph);
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long flags);
int cuGraphLaunch(void* executable, void* stream);
int cuEventCreate(void** event, unsigned flags);
int cuEventRecord(void* event, void* stream);
int cuStreamWaitEvent(void* stream, void* event, unsigned flags);

int cudaSetDevice(int) {
  double_use_device();
  return 0;
}
int cudaGetLastError() {
  return 0;
}
int cudaMalloc(void** memory, std::size_t size) {
  double_use_device();
  *memory = std::calloc(1, size > 0 ? size : 1);
  return 0;
}
int cudaFree(void* memory) {
  const int result = cuMemFree_v2(memory);
  double_use_device();  // not a tail call: this function stays on the stack
  return result;
}
int cudaMemcpy(void* to, const void* from, std::size_t size, int) {
  std::memcpy(to, from, size);
  return 0;
}
int cudaStreamCreate(void** stream) {
  double_use_device();
  return cuStreamCreate(stream, 0);
}
int cudaStreamSynchronize(void* stream) {
  double_use_device();
  return cuStreamSynchronize(stream);
}
int cudaStreamBeginCapture(void* stream, int mode) {
  return cuStreamBeginCapture_v2(stream, mode);
}
int cudaStreamEndCapture(void* stream, void** graph) {
  return cuStreamEndCapture(stream, graph);
}
int cudaGraphInstantiate(void** executable, void* graph, unsigned long long flags) {
  return cuGraphInstantiateWithFlags(executable, graph, flags);
}
int cudaGraphLaunch(void* executable, void* stream) {
  return cuGraphLaunch(executable, stream);
}
int cudaEventCreate(void** event) {
  double_use_device();
  return cuEventCreate(event, 0);
}
int cudaEventRecord(void* event, void* stream) {
  return cuEventRecord(event, stream);
}
int cudaStreamWaitEvent(void* stream, void* event, unsigned flags) {
  return cuStreamWaitEvent(stream, event, flags);
}
}
