// SPDX-License-Identifier: Apache-2.0
// The reports of CUPTI: the newest kernels of every stream, the event a stream waits for, the
// threads that wait for the GPU. Fixed tables under one short lock; what does not fit is dropped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/cuda/cupti_plugin.h"

namespace ddpdoctor::agent::cupti {

/// Empties the tables.
void clear();
/// A kernel was put into a stream.
void launched(std::uint64_t stream, const char* kernel, std::uint32_t correlation);
/// A kernel ended on the GPU.
void finished(std::uint32_t correlation);
void event_recorded(std::uint64_t event, std::uint64_t stream);
/// Later launches on the stream wait for the event.
void stream_waits(std::uint64_t stream, std::uint64_t event);
/// The calling thread enters or leaves a function that waits for the GPU. `object` 0 = all streams.
void host_waits(const char* function, std::uint64_t object);
void host_goes_on();

void tell_all(Tell tell, void* context, bool ends_are_told);

}  // namespace ddpdoctor::agent::cupti
