// SPDX-License-Identifier: Apache-2.0
// Spreads independent tasks over the processors, for moments in which a person waits for the
// result.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace ddpdoctor::base {

// With more threads, tasks that read a file or a capture would wait for the disk and for memory.
inline constexpr unsigned kMostThreads = 16;

/// The number of threads that in_parallel uses.
inline std::size_t threads_for(std::size_t tasks) {
  return std::min<std::size_t>(std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads),
                               tasks);
}

/// Calls `work(thread, task)` once for each task; returns when all are done. `thread` is less than
/// threads_for(tasks), and no two calls with the same thread overlap.
template <class Work>
void in_parallel(std::size_t tasks, const Work& work) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&](std::size_t thread) {
    for (std::size_t task = next++; task < tasks; task = next++) {
      work(thread, task);
    }
  };
  std::vector<std::jthread> others;
  for (std::size_t thread = 1; thread < threads_for(tasks); ++thread) {
    others.emplace_back(run, thread);
  }
  run(0);
}

}  // namespace ddpdoctor::base
