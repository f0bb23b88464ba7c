// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 (and, compiled into libcudart.so.13, its runtime) without a GPU: memory is the
// host's, a stream is a thread with a queue, an event is a flag that the queue sets. Only what NCCL
// jobs and our agent call. For tests.
#include "tests/doubles/nccl/cuda_double.h"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>

namespace ddpdoctor::doubles {
namespace {

constexpr int kNotReady = 600;

struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool busy = false;
  bool capturing = false;

  Stream() {
    std::thread([this] { run(); }).detach();
  }
  void put(std::function<void()> work) {
    const std::lock_guard lock(mutex);
    if (!capturing) {
      queue.push_back(std::move(work));
      changed.notify_all();
    }
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return queue.empty() && !busy; });
  }

 private:
  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return !queue.empty(); });
      const std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      busy = true;
      lock.unlock();
      work();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }
};

struct Event {
  std::atomic<int> recorded{0};
  std::atomic<int> done{0};
};

Stream& of(void* stream) {
  static Stream* const null_stream = new Stream;
  return reinterpret_cast<std::uintptr_t>(stream) <= 2 ? *null_stream
                                                       : *static_cast<Stream*>(stream);
}

int context = 0;                       // there is one; its address is its handle
thread_local void* current = nullptr;  // a thread has it after its first call of the runtime
std::atomic<int> contexts_made{0};

/// $CUDA_DOUBLE_IDLE: nothing runs, events are done at once. For measuring what stands before the
/// calls.
bool is_idle() {
  static const bool idle = std::getenv("CUDA_DOUBLE_IDLE") != nullptr;
  return idle;
}

}  // namespace

void enqueue(void* stream, std::function<void()> work) {
  if (is_idle()) {
    return;
  }
  of(stream).put(std::move(work));
}

}  // namespace ddpdoctor::doubles

using namespace ddpdoctor::doubles;

extern "C" {

int cuInit(unsigned) {
  return 0;
}
int cuCtxGetCurrent(void** out) {
  *out = current;
  return 0;
}
int cuCtxSetCurrent(void* wanted) {
  if (wanted != nullptr && wanted != &context) {
    return 201;
  }
  current = wanted;
  return 0;
}
/// Not of CUDA: what the runtime does at a thread's first call.
void double_use_device() {
  if (current == nullptr) {
    contexts_made.fetch_add(1);
    current = &context;
  }
}
/// Not of CUDA: for tests that nobody made a context in passing.
int double_contexts_made() {
  return contexts_made.load();
}
int cuStreamCreate(void** stream, unsigned) {
  *stream = new Stream;
  return 0;
}
int cuStreamSynchronize(void* stream) {
  of(stream).wait();
  return 0;
}
int cuStreamIsCapturing(void* stream, int* status) {
  const std::lock_guard lock(of(stream).mutex);
  *status = of(stream).capturing ? 1 : 0;
  return 0;
}
int cuStreamBeginCapture_v2(void* stream, int) {
  const std::lock_guard lock(of(stream).mutex);
  of(stream).capturing = true;
  return 0;
}
int cuStreamEndCapture(void* stream, void** graph) {
  const std::lock_guard lock(of(stream).mutex);
  of(stream).capturing = false;
  *graph = nullptr;
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  *mode = 0;
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return current == nullptr ? 201 : 0;
}
int cuEventDestroy_v2(void*) {
  return 0;  // left behind: the queue may still set it
}
int cuEventRecord(void* event, void* stream) {
  auto* const one = static_cast<Event*>(event);
  if (is_idle()) {
    return 0;
  }
  const int number = one->recorded.fetch_add(1) + 1;
  enqueue(stream, [one, number] { one->done.store(number); });
  return 0;
}
int cuEventQuery(void* event) {
  const auto* const one = static_cast<Event*>(event);
  return one->done.load() == one->recorded.load() ? 0 : kNotReady;
}
}
