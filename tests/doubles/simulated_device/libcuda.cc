// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 whose device is another process. Stripped when it is built: as with the real
// driver, a waiting host spins here, and its innermost frames have no names and differ between
// snapshots. The default stream (null) has no kernels of its own: it represents the host's tensors,
// and waits for what it was told to wait for.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <sched.h>
#include <string>
#include <unistd.h>
#include <vector>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "driver.h"

using namespace simulated;

namespace {

constexpr int kSuccess = 0;
constexpr int kNotInitialized = 3;
constexpr int kNotReady = 600;
/// Between calls of NCCL, a model launches kernels that are not simulated but fill the queue.
constexpr std::uint64_t kKernelsPerCall = 16;

struct Mark {
  int stream;
  std::uint64_t count;
};

struct Event {
  std::vector<Mark> marks;
};

std::mutex mutex;
Device* device = nullptr;
int streams = 0;
std::vector<Mark> awaited;  // by the default stream

Device* make_device() {
  const char* const folder = std::getenv("SIMULATED_DEVICE");
  if (folder == nullptr) {
    return nullptr;
  }
  const std::string name = std::string(folder) + "/" + std::to_string(getpid());
  const int fd = open((name + ".part").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Device)) != 0) {
    return nullptr;
  }
  void* const memory = mmap(nullptr, sizeof(Device), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) {
    return nullptr;
  }
  auto* const made = static_cast<Device*>(memory);
  made->pid = getpid();
  made->magic = kMagic;
  // The device writes into this process's memory.
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  rename((name + ".part").c_str(), (name + ".rank").c_str());
  return made;
}

bool is_over(const Mark& mark) {
  return device->streams[mark.stream].done.load(std::memory_order_acquire) >= mark.count;
}

bool are_over(const std::vector<Mark>& marks) {
  for (const Mark& one : marks) {
    if (!is_over(one)) {
      return false;
    }
  }
  return true;
}

// The spin loop: a few functions through which the program counter moves.
__attribute__((noinline)) unsigned breathe(unsigned turns) {
  unsigned sum = 0;
  for (unsigned i = 0; i < turns; ++i) {
    sum += i;
    __asm__ volatile("pause" : "+r"(sum));
  }
  return sum;
}
__attribute__((noinline)) unsigned look_at_clock(unsigned turns) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const unsigned sum = breathe(turns + static_cast<unsigned>(now.tv_nsec % 7));
  __asm__ volatile("" ::: "memory");
  return sum;
}
__attribute__((noinline)) unsigned give_way(unsigned turns) {
  if (turns % 64 == 0) {
    sched_yield();
  }
  const unsigned sum = look_at_clock(turns % 128);
  __asm__ volatile("" ::: "memory");
  return sum;
}

template <typename Over>
__attribute__((noinline)) void spin_until(const Over& over) {
  for (unsigned turn = 0; !over(); ++turn) {
    switch (turn % 3) {
      case 0:
        breathe(700);
        break;
      case 1:
        look_at_clock(300);
        break;
      default:
        give_way(turn);
    }
    __asm__ volatile("" ::: "memory");
  }
}

std::vector<Mark> marks_of(void* stream) {
  if (stream == nullptr) {
    const std::lock_guard lock(mutex);
    std::erase_if(awaited, is_over);
    return awaited;
  }
  const auto* const one = static_cast<Stream*>(stream);
  return {{static_cast<int>(one - device->streams), one->launched.load()}};
}

void wait_for(const std::vector<Mark>& marks) {
  spin_until([&marks] { return are_over(marks); });
}

void ring(Stream& stream) {
  stream.bell.fetch_add(1);
  syscall(SYS_futex, &stream.bell, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace

extern "C" {

#define PUBLIC __attribute__((visibility("default")))

PUBLIC Device* simulated_device() {
  const std::lock_guard lock(mutex);
  if (device == nullptr) {
    device = make_device();
  }
  return device != nullptr && device->pid == getpid() ? device : nullptr;
}

PUBLIC int cuInit(unsigned) {
  return simulated_device() == nullptr ? kNotInitialized : kSuccess;
}
PUBLIC int cuCtxGetCurrent(void** context) {
  *context = device;
  return kSuccess;
}
PUBLIC int cuCtxSetCurrent(void*) {
  return kSuccess;
}
PUBLIC int cuStreamIsCapturing(void*, int* status) {
  *status = 0;
  return kSuccess;
}
PUBLIC int cuThreadExchangeStreamCaptureMode(int*) {
  return kSuccess;
}

PUBLIC int cuStreamCreate(void** stream, unsigned) {
  if (simulated_device() == nullptr || streams == kStreams) {
    return kNotInitialized;
  }
  const std::lock_guard lock(mutex);
  Stream& one = device->streams[streams++];
  one.used = 1;
  *stream = &one;
  return kSuccess;
}

PUBLIC int simulated_launch(void* stream, const Command* commands, int count) {
  auto& one = *static_cast<Stream*>(stream);
  spin_until([&one, count] {
    return one.launched.load() + static_cast<std::uint64_t>(count) <=
           one.done.load() + kQueue / kKernelsPerCall;
  });
  const std::uint64_t at = one.launched.load();
  for (int i = 0; i < count; ++i) {
    one.queue[(at + static_cast<std::uint64_t>(i)) % kQueue] = commands[i];
  }
  one.launched.store(at + static_cast<std::uint64_t>(count), std::memory_order_release);
  ring(one);
  return kSuccess;
}

PUBLIC int cuStreamQuery(void* stream) {
  return are_over(marks_of(stream)) ? kSuccess : kNotReady;
}
PUBLIC int cuStreamSynchronize(void* stream) {
  if (simulated_device() == nullptr) {
    return kNotInitialized;
  }
  wait_for(marks_of(stream));
  return kSuccess;
}
PUBLIC int cuCtxSynchronize() {
  std::vector<Mark> all;
  for (int i = 0; i < streams; ++i) {
    all.push_back({i, device->streams[i].launched.load()});
  }
  wait_for(all);
  return kSuccess;
}

PUBLIC int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const auto& marks = static_cast<Event*>(event)->marks;
  if (stream == nullptr) {
    const std::lock_guard lock(mutex);
    std::erase_if(awaited, is_over);
    awaited.insert(awaited.end(), marks.begin(), marks.end());
    return kSuccess;
  }
  const int own = static_cast<int>(static_cast<Stream*>(stream) - device->streams);
  for (const Mark& mark : marks) {
    if (mark.stream != own && !is_over(mark)) {
      Command wait{};
      wait.kind = Kind::kWaitFor;
      wait.peer = mark.stream;
      wait.count = mark.count;
      simulated_launch(stream, &wait, 1);
    }
  }
  return kSuccess;
}

PUBLIC int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return kSuccess;
}
PUBLIC int cuEventRecord(void* event, void* stream) {
  static_cast<Event*>(event)->marks = marks_of(stream);
  return kSuccess;
}
PUBLIC int cuEventQuery(void* event) {
  return are_over(static_cast<Event*>(event)->marks) ? kSuccess : kNotReady;
}
PUBLIC int cuEventSynchronize(void* event) {
  wait_for(static_cast<Event*>(event)->marks);
  return kSuccess;
}
PUBLIC int cuEventDestroy_v2(void* event) {
  delete static_cast<Event*>(event);
  return kSuccess;
}
}
