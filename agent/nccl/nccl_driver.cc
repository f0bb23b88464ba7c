// SPDX-License-Identifier: Apache-2.0
#include "agent/nccl/nccl_driver.h"

#include <cstdlib>
#include <cstring>

#include "agent/inside.h"
#include "agent/slots/definitions.h"

namespace ddpdoctor::agent::nccl {

constinit Driver driver{};
constinit std::atomic<int> readiness{kUnasked};

namespace {

template <typename F>
bool find(const void* library, F*& function, const char* name, const char* newer = nullptr) {
  if (newer != nullptr) {
    function = reinterpret_cast<F*>(look_up(library, Reach::kItself, newer));
  }
  if (function == nullptr) {
    function = reinterpret_cast<F*>(look_up(library, Reach::kItself, name));
  }
  return function != nullptr;
}

bool is_driver(const char* path) {
  const char* const slash = strrchr(path, '/');
  return strncmp(slash == nullptr ? path : slash + 1, "libcuda.so", 10) == 0;
}

bool find_driver() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): read only
  const char* const wanted = getenv("DDPDOCTOR_NCCL_EVENTS");
  if (wanted != nullptr && wanted[0] == '0') {
    return false;
  }
  const void* library = nullptr;
  if (loaded_objects(is_driver, &library, 1) == 0) {
    return false;
  }
  return find(library, driver.current, "cuCtxGetCurrent") &&
         find(library, driver.make_current, "cuCtxSetCurrent") &&
         find(library, driver.create, "cuEventCreate") &&
         find(library, driver.record, "cuEventRecord") &&
         find(library, driver.query, "cuEventQuery") &&
         find(library, driver.destroy, "cuEventDestroy", "cuEventDestroy_v2") &&
         find(library, driver.is_capturing, "cuStreamIsCapturing") &&
         find(library, driver.exchange_mode, "cuThreadExchangeStreamCaptureMode");
}

}  // namespace

bool driver_is_usable() {
  const int seen = readiness.load(std::memory_order_acquire);
  if (seen == kOn || seen == kOff) {
    return seen == kOn;
  }
  int expected = kUnasked;
  if (!readiness.compare_exchange_strong(expected, kAsking, std::memory_order_acq_rel)) {
    return false;  // another thread is searching right now
  }
  const Inside inside;
  const bool found = find_driver();
  readiness.store(found ? kOn : kOff, std::memory_order_release);
  return found;
}

}  // namespace ddpdoctor::agent::nccl
