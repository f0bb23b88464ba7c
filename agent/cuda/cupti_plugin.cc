// SPDX-License-Identifier: Apache-2.0
// libddpdoctor_cupti.so: CUPTI during a profiling window. Built with CUPTI's headers but not linked
// to it: if CUPTI is missing or another tool uses it (Kineto, Nsight), the window stays closed and
// gives the reason. Callbacks of the driver's functions show what is launched and which threads
// wait; activity records show what ended, but only if CUPTI was not in the process before: its
// buffers belong to a single user, which is then Kineto.
#include "agent/cuda/cupti_plugin.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cupti.h>
#include <dlfcn.h>

#include "agent/cuda/cupti_table.h"

namespace ddpdoctor::agent::cupti {
namespace {

#define CUPTI_FUNCTION(name) decltype(&::cupti##name) name = nullptr
struct Cupti {
  CUPTI_FUNCTION(Subscribe);
  CUPTI_FUNCTION(EnableCallback);
  CUPTI_FUNCTION(ActivityRegisterCallbacks);
  CUPTI_FUNCTION(ActivityEnable);
  CUPTI_FUNCTION(ActivityDisable);
  CUPTI_FUNCTION(ActivityFlushAll);
  CUPTI_FUNCTION(ActivityGetNextRecord);
};
Cupti cupti;
CUpti_SubscriberHandle subscriber = nullptr;
bool records_kernels = false;
/// Callbacks after the end of the window are ignored.
std::atomic<bool> is_open{false};

constexpr CUpti_driver_api_trace_cbid kWatched[] = {
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
    CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch,
    CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuEventRecord,
    CUPTI_DRIVER_TRACE_CBID_cuEventRecord_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags,
    CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent,
    CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize,
    CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz,
    CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize,
    CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize,
    CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2,
    CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2};

template <typename Handle>
std::uint64_t number(Handle handle) {
  return reinterpret_cast<std::uint64_t>(handle);
}

/// Records what was put into a stream, at the end of a successful call.
void put(CUpti_CallbackId function, const CUpti_CallbackData& data) {
  const void* const arguments = data.functionParams;
  switch (function) {
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz:
      return launched(number(static_cast<const cuLaunchKernel_params*>(arguments)->hStream),
                      data.symbolName, data.correlationId);
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz: {
      const auto& call = *static_cast<const cuLaunchKernelEx_params*>(arguments);
      return launched(call.config == nullptr ? 0 : number(call.config->hStream), data.symbolName,
                      data.correlationId);
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel:
    case CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz:
      return launched(
          number(static_cast<const cuLaunchCooperativeKernel_params*>(arguments)->hStream),
          data.symbolName, data.correlationId);
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch:
    case CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch_ptsz:
      return launched(number(static_cast<const cuGraphLaunch_params*>(arguments)->hStream),
                      "a CUDA graph", data.correlationId);
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecord:
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecord_ptsz:
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags:
    case CUPTI_DRIVER_TRACE_CBID_cuEventRecordWithFlags_ptsz: {
      const auto& call = *static_cast<const cuEventRecord_params*>(arguments);
      return event_recorded(number(call.hEvent), number(call.hStream));
    }
    case CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz: {
      const auto& call = *static_cast<const cuStreamWaitEvent_params*>(arguments);
      return stream_waits(number(call.hStream), number(call.hEvent));
    }
    default:
      return;
  }
}

/// What a thread waits for in this function; false when it does not wait.
bool awaited(CUpti_CallbackId function, const void* arguments, std::uint64_t& object) {
  object = 0;
  switch (function) {
    case CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize:
    case CUPTI_DRIVER_TRACE_CBID_cuStreamSynchronize_ptsz:
      object = number(static_cast<const cuStreamSynchronize_params*>(arguments)->hStream);
      return true;
    case CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize:
      object = number(static_cast<const cuEventSynchronize_params*>(arguments)->hEvent);
      return true;
    case CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize:
    case CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2:
    case CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoH_v2:
      return true;
    default:
      return false;
  }
}

void CUPTIAPI on_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId function,
                      const void* told) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || told == nullptr || !is_open.load()) {
    return;
  }
  const auto& data = *static_cast<const CUpti_CallbackData*>(told);
  std::uint64_t object = 0;
  if (data.functionParams == nullptr) {
    return;
  }
  if (awaited(function, data.functionParams, object)) {
    data.callbackSite == CUPTI_API_ENTER ? host_waits(data.functionName, object) : host_goes_on();
    return;
  }
  const auto* const result = static_cast<const CUresult*>(data.functionReturnValue);
  if (data.callbackSite == CUPTI_API_EXIT && (result == nullptr || *result == CUDA_SUCCESS)) {
    put(function, data);
  }
}

/// Buffers that CUPTI fills with records; without a free one it drops records, so that some ends
/// stay unknown.
constexpr std::size_t kBufferBytes = 64 * 1024;
constexpr std::size_t kBuffers = 8;
struct alignas(8) Buffer {
  std::atomic<bool> used;
  alignas(8) std::uint8_t bytes[kBufferBytes];
};
Buffer buffers[kBuffers];

void CUPTIAPI on_buffer_wanted(std::uint8_t** buffer, std::size_t* size, std::size_t* most) {
  *buffer = nullptr;
  *size = 0;
  *most = 0;
  for (Buffer& one : buffers) {
    if (!one.used.exchange(true)) {
      *buffer = one.bytes;
      *size = kBufferBytes;
      return;
    }
  }
}

void CUPTIAPI on_buffer_full(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                             std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (valid > 0 && cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
        record->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
      // This field has the same offset in every CUPTI from 7 (Kernel3) to 13 (Kernel10).
      finished(reinterpret_cast<const CUpti_ActivityKernel4*>(record)->correlationId);
    }
  }
  for (Buffer& one : buffers) {
    if (one.bytes == buffer) {
      one.used.store(false);
    }
  }
}

template <typename F>
bool find(void* library, F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(void* library) {
  return find(library, cupti.Subscribe, "cuptiSubscribe") &&
         find(library, cupti.EnableCallback, "cuptiEnableCallback") &&
         find(library, cupti.ActivityRegisterCallbacks, "cuptiActivityRegisterCallbacks") &&
         find(library, cupti.ActivityEnable, "cuptiActivityEnable") &&
         find(library, cupti.ActivityDisable, "cuptiActivityDisable") &&
         find(library, cupti.ActivityFlushAll, "cuptiActivityFlushAll") &&
         find(library, cupti.ActivityGetNextRecord, "cuptiActivityGetNextRecord");
}

constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12"};

/// The CUPTI that is loaded already, else the one installed with us; null if there is none.
void* library(bool& was_loaded) {
  was_loaded = true;
  for (const int how : {RTLD_NOLOAD | RTLD_NOW, RTLD_NOW | RTLD_LOCAL}) {
    for (const char* const name : kNames) {
      if (void* const found = dlopen(name, how); found != nullptr) {
        return found;
      }
    }
    was_loaded = false;
  }
  return nullptr;
}

/// Tools that register before us, with which CUPTI would refuse us.
constexpr const char* kOthers[] = {"CUDA_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID",
                                   "KINETO_USE_DAEMON"};

const char* failed(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "another tool uses CUPTI (torch's profiler, Nsight)";
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
      return "CUPTI lacks privileges";
    default:
      return "CUPTI does not start here (no driver?)";
  }
}

bool was_here = false;  // CUPTI was loaded before, perhaps by a user with its own buffers

const char* subscribe() {
  for (const char* const name : kOthers) {
    if (std::getenv(name) != nullptr) {
      return "another tool has announced itself (Nsight or Kineto's daemon)";
    }
  }
  void* const found = library(was_here);
  if (found == nullptr) {
    return "no libcupti.so.13 or .12 to be found";
  }
  if (!find_all(found)) {
    return "this libcupti lacks functions";
  }
  const CUptiResult result = cupti.Subscribe(&subscriber, on_call, nullptr);
  return result == CUPTI_SUCCESS ? nullptr : failed(result);
}

void watch_calls(bool on) {
  for (const CUpti_driver_api_trace_cbid function : kWatched) {
    // Older versions have fewer.
    cupti.EnableCallback(on ? 1 : 0, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, function);
  }
}

void open(Ends ends) {
  clear();
  is_open.store(true);
  watch_calls(true);
  records_kernels =
      ends == Ends::kTold && (records_kernels || !was_here) &&
      cupti.ActivityRegisterCallbacks(on_buffer_wanted, on_buffer_full) == CUPTI_SUCCESS &&
      cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) == CUPTI_SUCCESS;
}

void look(Tell tell, void* context) {
  if (records_kernels) {
    cupti.ActivityFlushAll(0);  // complete records only; does not wait for kernels
  }
  tell_all(tell, context, records_kernels);
}

void close() {
  is_open.store(false);
  watch_calls(false);
  if (records_kernels) {
    cupti.ActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cupti.ActivityFlushAll(0);
  }
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) extern const Plugin ddpdoctor_cupti;
const Plugin ddpdoctor_cupti = {
    .interface = kInterface, .subscribe = subscribe, .open = open, .look = look, .close = close};
}

}  // namespace ddpdoctor::agent::cupti
