// SPDX-License-Identifier: Apache-2.0
// Launches of CUDA graphs that contain NCCL calls. A captured call is seen once, at capture; its
// graph runs it at every launch. One slot of the ring per graph, whose count grows.
#include <atomic>
#include <cstdint>

#include "agent/cuda/cuda_function.h"
#include "agent/inside.h"
#include "agent/nccl/nccl_launches.h"
#include "agent/record/python_site.h"
#include "agent/record/recorder.h"

namespace ddpdoctor::agent {
namespace {

struct Graph {
  std::atomic<void*> executable;  // null = free
  std::atomic<std::int64_t> launches;
  std::atomic<std::uint64_t> index;  // index of its slot + 1; 0 = not written yet
  std::uint32_t calls;               // number of NCCL calls
};
constexpr std::size_t kGraphs = 64;
constinit Graph graphs[kGraphs]{};

void* const kGone = reinterpret_cast<void*>(1);  // NOLINT(performance-no-int-to-ptr): a mark

/// The newest executable graph gets all calls captured since the previous one. Handles are reused:
/// a graph without calls is forgotten.
void instantiated(void* executable) {
  const std::uint32_t calls = nccl::take_captured();
  for (Graph& one : graphs) {
    void* known = one.executable.load(std::memory_order_acquire);
    if (known == executable || (known == nullptr && calls > 0)) {
      one.calls = calls;
      one.launches.store(0, std::memory_order_relaxed);
      one.index.store(0, std::memory_order_relaxed);
      one.executable.store(calls > 0 ? executable : kGone, std::memory_order_release);
      return;
    }
  }
}

void launched(wire::Ring& ring, Graph& graph) {
  const std::int64_t launches = graph.launches.fetch_add(1, std::memory_order_relaxed) + 1;
  const std::uint64_t index = graph.index.load(std::memory_order_acquire);
  wire::Slot* const slot = index == 0 ? nullptr : &ring.slot[(index - 1) % wire::kSlots];
  if (slot != nullptr && slot->sequence.load(std::memory_order_acquire) == index) {
    std::atomic_ref(slot->count).store(launches, std::memory_order_relaxed);
    return;
  }
  graph.index.store(
      record(ring, {.kind = wire::EventKind::kGraphLaunch,
                    .site = call_site(ring),
                    .object = reinterpret_cast<std::uint64_t>(graph.executable.load()),
                    .count = launches,
                    .peer = static_cast<std::int32_t>(graph.calls)}),
      std::memory_order_release);
}

void about_to_launch(void* executable) {
  for (Graph& one : graphs) {
    void* const known = one.executable.load(std::memory_order_acquire);
    if (known == nullptr) {
      return;
    }
    if (known == executable) {
      const Inside inside;
      if (wire::Ring* const ring_now = ring(); inside && ring_now != nullptr) {
        launched(*ring_now, one);
      }
      return;
    }
  }
}

}  // namespace

int instantiate_graph(CudaFunction function, int version, void** executable, void* graph,
                      std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const int result = call_cuda(function, version, executable, graph, a, b, c);
  if (result == 0 && executable != nullptr) {
    instantiated(*executable);
  }
  return result;
}

int launch_graph(int version, void* executable, void* stream) {
  about_to_launch(executable);
  return call_cuda(kcudaGraphLaunch, version, executable, stream);
}

/// In a forked child: it has no graphs of its own.
void forget_graphs() {
  for (Graph& one : graphs) {
    one.executable.store(nullptr, std::memory_order_relaxed);
  }
}

}  // namespace ddpdoctor::agent
