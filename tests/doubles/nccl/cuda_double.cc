// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for tests (and, compiled into libcudart.so.13, its runtime) without a GPU: memory
// is the host's, a stream is a thread with a queue, an event is a flag that the queue sets.
// Contains only what NCCL jobs and our agent call.
#include "tests/doubles/nccl/cuda_double.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

namespace ddpdoctor::doubles {
namespace {

constexpr int kNotReady = 600;

struct Stream {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  bool busy = false;
  bool capturing = false;
  bool spoiled = false;  // the capture was invalidated by a call that is not allowed during it
  std::vector<std::function<void()>> captured;

  Stream() {
    const std::lock_guard lock(all_mutex);
    all.push_back(this);
    std::thread([this] { run(); }).detach();
  }
  inline static std::mutex all_mutex;
  inline static std::vector<Stream*> all;  // streams are never freed
  void put(std::function<void()> work) {
    const std::lock_guard lock(mutex);
    if (capturing) {
      captured.push_back(std::move(work));
      return;
    }
    queue.push_back(std::move(work));
    changed.notify_all();
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

struct Graph {
  std::vector<std::function<void()>> work;
};

std::atomic<const Observer*> observer{nullptr};
std::atomic<unsigned> correlations{0};

/// The arguments of calls as CUPTI passes them: our plugin finds the ones it reads at their real
/// offsets.
struct LaunchArguments {
  const void* function;
  unsigned sizes[7];
  void* stream;
  void** parameters;
  void** extra;
};
struct TwoHandles {
  void* first;
  void* second;
};
enum Function : int {
  kEventRecord = 119,
  kStreamSynchronize = 126,
  kStreamWaitEvent = 295,
  kLaunchKernel = 307,
  kGraphLaunch = 514
};

/// A call of the driver that an observer may watch.
class Observed {
 public:
  Observed(Function function, const char* name, const void* arguments, const char* kernel = nullptr)
      : who_(observer.load()),
        function_(function),
        name_(name),
        arguments_(arguments),
        kernel_(kernel),
        correlation_(++correlations) {
    tell(false);
  }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;
  ~Observed() {
    tell(true);
  }
  [[nodiscard]] unsigned correlation() const {
    return correlation_;
  }

 private:
  void tell(bool leaves) const {
    if (who_ != nullptr) {
      who_->call(function_, leaves, name_, arguments_, kernel_, correlation_);
    }
  }
  const Observer* who_;
  Function function_;
  const char* name_;
  const void* arguments_;
  const char* kernel_;
  unsigned correlation_;
};

void ended(unsigned correlation) {
  if (const Observer* const who = observer.load(); who != nullptr) {
    who->kernel_ended(correlation);
  }
}

struct Event {
  std::atomic<int> recorded{0};
  std::atomic<int> done{0};
};

Stream& of(void* stream) {
  static Stream* const null_stream = new Stream;
  return reinterpret_cast<std::uintptr_t>(stream) <= 2 ? *null_stream
                                                       : *static_cast<Stream*>(stream);
}

int context = 0;  // there is one; its address is its handle
constexpr int kRelaxed = 2;
constexpr int kCaptureInvalidated = 901;
thread_local int capture_mode = 0;     // of this thread's calls: global
thread_local void* current = nullptr;  // set by the thread's first call of the runtime
std::atomic<int> contexts_made{0};
std::atomic<int> events_recorded{0};

/// $CUDA_DOUBLE_IDLE: nothing runs, events complete at once. For measuring the cost in front of the
/// calls.
bool is_idle() {
  static const bool idle = std::getenv("CUDA_DOUBLE_IDLE") != nullptr;
  return idle;
}

/// A query by a thread that is not in relaxed mode invalidates every capture, as with the real
/// driver.
void spoil_captures() {
  if (capture_mode == kRelaxed) {
    return;
  }
  const std::lock_guard all(Stream::all_mutex);
  for (Stream* const stream : Stream::all) {
    const std::lock_guard lock(stream->mutex);
    stream->spoiled = stream->spoiled || stream->capturing;
  }
}

}  // namespace

void enqueue(void* stream, std::function<void()> work, const char* kernel) {
  if (is_idle()) {
    return;
  }
  const LaunchArguments arguments{nullptr, {}, stream, nullptr, nullptr};
  const Observed call(kLaunchKernel, "cuLaunchKernel", &arguments, kernel);
  of(stream).put([work = std::move(work), correlation = call.correlation()] {
    work();
    ended(correlation);
  });
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
/// Not part of CUDA: what the runtime does at a thread's first call.
void double_use_device() {
  if (current == nullptr) {
    contexts_made.fetch_add(1);
    current = &context;
  }
}
/// Not part of CUDA: lets tests check that no context was made by accident.
int double_contexts_made() {
  return contexts_made.load();
}
/// Not part of CUDA: the number of events recorded in streams.
int double_events_recorded() {
  return events_recorded.load();
}
int cuStreamCreate(void** stream, unsigned) {
  *stream = new Stream;
  return 0;
}
void double_observe(const Observer* who) {
  observer.store(who);
}
int cuStreamSynchronize(void* stream) {
  const Observed call(kStreamSynchronize, "cuStreamSynchronize", &stream);
  of(stream).wait();
  return 0;
}
/// Waits for the whole device, as the real function does.
int cuMemFree_v2(void* memory) {
  std::vector<Stream*> streams;
  {
    const std::lock_guard lock(Stream::all_mutex);
    streams = Stream::all;
  }
  for (Stream* const stream : streams) {
    stream->wait();
  }
  std::free(memory);
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
  *graph = new Graph{std::move(of(stream).captured)};
  of(stream).captured.clear();
  const bool spoiled = of(stream).spoiled;
  of(stream).spoiled = false;
  return spoiled ? kCaptureInvalidated : 0;
}
int cuGraphInstantiateWithFlags(void** executable, void* graph, unsigned long long) {
  *executable = graph;
  return 0;
}
int cuGraphLaunch(void* executable, void* stream) {
  const TwoHandles arguments{executable, stream};
  const Observed call(kGraphLaunch, "cuGraphLaunch", &arguments);
  for (const auto& work : static_cast<Graph*>(executable)->work) {
    of(stream).put(work);
  }
  return 0;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(*mode, capture_mode);
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  *event = new Event;
  return current == nullptr ? 201 : 0;
}
int cuEventDestroy_v2(void*) {
  return 0;  // leaked: the queue may still set it
}
int cuEventRecord(void* event, void* stream) {
  auto* const one = static_cast<Event*>(event);
  events_recorded.fetch_add(1);
  if (is_idle()) {
    return 0;
  }
  const TwoHandles arguments{event, stream};
  const Observed call(kEventRecord, "cuEventRecord", &arguments);
  const int number = one->recorded.fetch_add(1) + 1;
  of(stream).put([one, number] { one->done.store(number); });
  return 0;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const TwoHandles arguments{stream, event};
  const Observed call(kStreamWaitEvent, "cuStreamWaitEvent", &arguments);
  const auto* const one = static_cast<Event*>(event);
  of(stream).put([one, number = one->recorded.load()] {
    while (one->done.load() < number) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  return 0;
}
/// Not part of CUDA: a kernel that runs this long.
void double_compute(void* stream, int milliseconds, const char* kernel) {
  enqueue(
      stream,
      [milliseconds] { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); },
      kernel);
}
/// $CUDA_DOUBLE_WEDGED: while that file exists, the driver does not answer.
int cuEventQuery(void* event) {
  static const char* const wedged = std::getenv("CUDA_DOUBLE_WEDGED");
  while (wedged != nullptr && access(wedged, F_OK) == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  spoil_captures();
  const auto* const one = static_cast<Event*>(event);
  return one->done.load() == one->recorded.load() ? 0 : kNotReady;
}
}
