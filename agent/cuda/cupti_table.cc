// SPDX-License-Identifier: Apache-2.0
#include "agent/cuda/cupti_table.h"

#include <atomic>
#include <cstring>
#include <unistd.h>

#include <sys/syscall.h>

namespace ddpdoctor::agent::cupti {
namespace {

constexpr std::size_t kStreams = 64;
constexpr std::size_t kKept = 8;  // kernels kept per stream
constexpr std::size_t kEvents = 512;
constexpr std::size_t kThreads = 64;
constexpr std::size_t kNameBytes = 128;

struct Behind {
  std::uint64_t stream;
  char kernel[kNameBytes];  // empty = nothing to wait for
};
struct Kernel {
  char name[kNameBytes];
  std::uint32_t correlation;
  bool finished;
  Behind behind;
};
struct Stream {
  std::uint64_t handle;
  bool used;
  std::uint64_t launches;
  Kernel kernel[kKept];  // launch n is at n % kKept
  Behind next;           // what the next kernel waits for
};
struct Event {
  std::uint64_t handle;  // 0 = free
  Behind behind;
};
struct Waiting {
  std::uint32_t thread;  // 0 = free
  const char* function;  // CUPTI's own text, which stays valid
  std::uint64_t object;
};

Stream streams[kStreams];
Event events[kEvents];
std::size_t next_event = 0;
Waiting waiting[kThreads];
std::atomic_flag busy = ATOMIC_FLAG_INIT;

/// Held for a few hundred nanoseconds; a waiting thread yields the CPU.
class Lock {
 public:
  Lock() {
    while (busy.test_and_set(std::memory_order_acquire)) {
      syscall(SYS_sched_yield);
    }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock() {
    busy.clear(std::memory_order_release);
  }
};

std::uint32_t this_thread() {
  return static_cast<std::uint32_t>(syscall(SYS_gettid));
}

void copy_name(char (&into)[kNameBytes], const char* name) {
  const char* const text = name == nullptr ? "a kernel" : name;
  const std::size_t length = strnlen(text, kNameBytes - 1);
  memcpy(into, text, length);
  into[length] = '\0';
}

Stream* stream_of(std::uint64_t handle) {
  for (Stream& one : streams) {
    if (one.used && one.handle == handle) {
      return &one;
    }
    if (!one.used) {
      one.used = true;
      one.handle = handle;
      return &one;
    }
  }
  return nullptr;
}

}  // namespace

void clear() {
  const Lock lock;
  memset(static_cast<void*>(streams), 0, sizeof streams);
  memset(static_cast<void*>(events), 0, sizeof events);
  memset(static_cast<void*>(waiting), 0, sizeof waiting);
  next_event = 0;
}

void launched(std::uint64_t stream, const char* kernel, std::uint32_t correlation) {
  const Lock lock;
  Stream* const one = stream_of(stream);
  if (one == nullptr) {
    return;
  }
  Kernel& place = one->kernel[one->launches++ % kKept];
  copy_name(place.name, kernel);
  place.correlation = correlation;
  place.finished = false;
  place.behind = one->next;
  one->next.kernel[0] = '\0';
}

void finished(std::uint32_t correlation) {
  const Lock lock;
  for (Stream& one : streams) {
    for (std::uint64_t i = 0; one.used && i < kKept && i < one.launches; ++i) {
      if (one.kernel[i].correlation == correlation) {
        one.kernel[i].finished = true;
        return;
      }
    }
  }
}

void event_recorded(std::uint64_t event, std::uint64_t stream) {
  const Lock lock;
  const Stream* const one = stream_of(stream);
  Event* place = nullptr;
  for (Event& known : events) {
    place = known.handle == event ? &known : place;
  }
  place = place == nullptr ? &events[next_event++ % kEvents] : place;
  place->handle = event;
  place->behind.stream = stream;
  place->behind.kernel[0] = '\0';
  if (one != nullptr && one->launches > 0) {
    copy_name(place->behind.kernel, one->kernel[(one->launches - 1) % kKept].name);
  }
}

void stream_waits(std::uint64_t stream, std::uint64_t event) {
  const Lock lock;
  Stream* const one = stream_of(stream);
  for (const Event& known : events) {
    if (one != nullptr && known.handle == event && known.behind.stream != stream) {
      one->next = known.behind;
    }
  }
}

void host_waits(const char* function, std::uint64_t object) {
  const Lock lock;
  const std::uint32_t thread = this_thread();
  for (Waiting& one : waiting) {
    if (one.thread == 0 || one.thread == thread) {
      one = {thread, function, object};
      return;
    }
  }
}

void host_goes_on() {
  const Lock lock;
  const std::uint32_t thread = this_thread();
  for (Waiting& one : waiting) {
    if (one.thread == thread) {
      one = {};
    }
  }
}

namespace {

/// Called with the lock held: `tell` must not call this table.
void tell_stream(const Stream& stream, Tell tell, void* context, bool ends_are_told) {
  const std::uint64_t kept = stream.launches < kKept ? stream.launches : kKept;
  for (std::uint64_t place = 0; place < kept; ++place) {
    const Kernel& kernel = stream.kernel[(stream.launches - 1 - place) % kKept];
    tell(context, {.what = What::kKernel,
                   .object = stream.handle,
                   .text = kernel.name,
                   .place = static_cast<std::uint32_t>(place),
                   .finished = kernel.finished,
                   .ends_are_told = ends_are_told});
    if (kernel.behind.kernel[0] != '\0') {
      tell(context, {.what = What::kStreamWait,
                     .object = stream.handle,
                     .other = kernel.behind.stream,
                     .text = kernel.behind.kernel,
                     .place = static_cast<std::uint32_t>(place)});
    }
  }
}

}  // namespace

void tell_all(Tell tell, void* context, bool ends_are_told) {
  const Lock lock;
  for (const Stream& stream : streams) {
    if (stream.used) {
      tell_stream(stream, tell, context, ends_are_told);
    }
  }
  for (const Waiting& one : waiting) {
    if (one.thread != 0) {
      tell(context, {.what = What::kHostWait,
                     .object = one.object,
                     .text = one.function,
                     .thread = one.thread});
    }
  }
}

}  // namespace ddpdoctor::agent::cupti
