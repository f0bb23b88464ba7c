// SPDX-License-Identifier: Apache-2.0
// What the libraries of the simulated device use of each other in addition to CUDA's own functions.
#pragma once

#include <cstdint>

#include "protocol.h"

extern "C" {

/// The rank's device; null if there is none, or in a child of fork.
simulated::Device* simulated_device();
/// Puts a kernel (with `together` further ones after it) into a stream's queue; the host spins
/// while the queue is full.
int simulated_launch(void* stream, const simulated::Command* commands, int count);

int cuInit(unsigned flags);
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamQuery(void* stream);
int cuStreamSynchronize(void* stream);
int cuStreamWaitEvent(void* stream, void* event, unsigned flags);
int cuCtxSynchronize();
int cuEventCreate(void** event, unsigned flags);
int cuEventRecord(void* event, void* stream);
int cuEventQuery(void* event);
int cuEventSynchronize(void* event);
int cuEventDestroy_v2(void* event);
int cudaStreamSynchronize(void* stream);
int cudaDeviceSynchronize();
int cudaEventSynchronize(void* event);
}
