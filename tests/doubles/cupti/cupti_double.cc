// SPDX-License-Identifier: Apache-2.0
// A libcupti.so.13 for tests that reports what the double of the driver does: callbacks around its
// calls, and records of kernels that have ended. The layouts are written by hand from CUPTI's
// manual, so that code compiled against CUPTI's headers is compared with them.
// CUPTI_DOUBLE_ANSWER=N   cuptiSubscribe returns N
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>
#include <set>
#include <vector>

#include "tests/doubles/nccl/cuda_double.h"

namespace {

using Callback = void (*)(void* user, int domain, std::uint32_t function, const void* data);
using WantBuffer = void (*)(std::uint8_t** buffer, std::size_t* size, std::size_t* most);
using BufferFull = void (*)(void* context, std::uint32_t stream, std::uint8_t* buffer,
                            std::size_t size, std::size_t valid);

constexpr int kNotInitialized = 15;
constexpr int kMaxLimitReached = 12;
constexpr int kDriverDomain = 1;
constexpr std::uint32_t kConcurrentKernel = 10;

struct CallbackData {
  int site;  // 0: enter, 1: exit
  const char* function;
  const void* arguments;
  void* result;
  const char* kernel;
  void* context;
  std::uint32_t context_number;
  std::uint64_t* kept;
  std::uint32_t correlation;
};

struct KernelRecord {
  std::uint32_t kind;
  char before[88];
  std::uint32_t correlation;
  char rest[112];
};
static_assert(offsetof(KernelRecord, correlation) == 92);

std::mutex mutex;
Callback callback = nullptr;
void* user = nullptr;
std::set<std::uint32_t> wanted;
WantBuffer want_buffer = nullptr;
BufferFull buffer_full = nullptr;
bool records = false;
std::vector<unsigned> ended;

void on_call(int function, bool leaves, const char* name, const void* arguments, const char* kernel,
             unsigned correlation) {
  {
    const std::lock_guard lock(mutex);
    if (callback == nullptr || !wanted.contains(static_cast<std::uint32_t>(function))) {
      return;
    }
  }
  int result = 0;
  const CallbackData data{leaves ? 1 : 0, name, arguments, &result,    kernel,
                          nullptr,        1,    nullptr,   correlation};
  callback(user, kDriverDomain, static_cast<std::uint32_t>(function), &data);
}

void on_end(unsigned correlation) {
  const std::lock_guard lock(mutex);
  if (records) {
    ended.push_back(correlation);
  }
}

constexpr ddpdoctor::doubles::Observer kObserver{on_call, on_end};

void observe(const ddpdoctor::doubles::Observer* who) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  using Observe = void (*)(const ddpdoctor::doubles::Observer*);
  if (driver != nullptr) {
    reinterpret_cast<Observe>(dlsym(driver, "double_observe"))(who);
  }
}

}  // namespace

extern "C" {

int cuptiSubscribe(void** subscriber, Callback function, void* data) {
  if (const char* const answer = std::getenv("CUPTI_DOUBLE_ANSWER"); answer != nullptr) {
    return std::atoi(answer);
  }
  const std::lock_guard lock(mutex);
  callback = function;
  user = data;
  *subscriber = &mutex;
  observe(&kObserver);
  return 0;
}
int cuptiUnsubscribe(void*) {
  observe(nullptr);
  const std::lock_guard lock(mutex);
  callback = nullptr;
  wanted.clear();
  return 0;
}
int cuptiEnableCallback(std::uint32_t enable, void*, int domain, std::uint32_t function) {
  const std::lock_guard lock(mutex);
  if (domain == kDriverDomain && enable != 0) {
    wanted.insert(function);
  }
  return 0;
}
int cuptiActivityRegisterCallbacks(WantBuffer want, BufferFull full) {
  want_buffer = want;
  buffer_full = full;
  return 0;
}
int cuptiActivityEnable(std::uint32_t kind) {
  const std::lock_guard lock(mutex);
  records = kind == kConcurrentKernel;
  return want_buffer == nullptr ? kNotInitialized : 0;
}
int cuptiActivityDisable(std::uint32_t) {
  const std::lock_guard lock(mutex);
  records = false;
  return 0;
}
int cuptiActivityFlushAll(std::uint32_t) {
  std::vector<unsigned> now;
  {
    const std::lock_guard lock(mutex);
    now.swap(ended);
  }
  std::uint8_t* buffer = nullptr;
  std::size_t size = 0;
  std::size_t most = 0;
  for (std::size_t at = 0; at < now.size();) {
    want_buffer(&buffer, &size, &most);
    std::size_t used = 0;
    for (; buffer != nullptr && at < now.size() && used + sizeof(KernelRecord) <= size; ++at) {
      const KernelRecord record{kConcurrentKernel, {}, now[at], {}};
      std::memcpy(buffer + used, &record, sizeof record);
      used += sizeof record;
    }
    if (buffer == nullptr) {
      return 0;  // dropped
    }
    buffer_full(nullptr, 0, buffer, size, used);
  }
  return 0;
}
int cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid, void** record) {
  auto* const next =
      *record == nullptr ? buffer : static_cast<std::uint8_t*>(*record) + sizeof(KernelRecord);
  if (next + sizeof(KernelRecord) > buffer + valid) {
    return kMaxLimitReached;
  }
  *record = next;
  return 0;
}
}
