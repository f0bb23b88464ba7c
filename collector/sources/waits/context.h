// SPDX-License-Identifier: Apache-2.0
// The data that all wait queries share: the job, its descriptors, sockets, file locks and memory,
// each read on first use.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "collector/sources/files/descriptors.h"
#include "collector/sources/files/file_locks.h"
#include "collector/sources/network/sockets.h"
#include "collector/sources/processes/process_table.h"
#include "collector/sources/waits/targets.h"
#include "collector/stacks/stack.h"
#include "collector/stacks/target/live_memory.h"
#include "collector/stacks/target/maps_table.h"

namespace ddpdoctor::sources {

inline constexpr std::size_t kMostPolled = 1024;  // descriptors of one poll that are examined

/// Whether the system call is in the list.
template <std::size_t Size>
bool is_one_of(std::int64_t call, const std::array<int, Size>& calls) {
  return std::find(calls.begin(), calls.end(), call) != calls.end();
}

/// A thread whose wait is to be explained.
struct WaitingThread {
  const JobProcess& process;
  const stacks::ProcessStacks& stacks;
  const stacks::ThreadStack& thread;
};

/// The missing end of a channel: a reader waits for writers.
enum class Direction { kRead, kWrite };

/// A descriptor that a system call waits for.
struct AwaitedDescriptor {
  int fd = -1;
  Direction direction = Direction::kRead;
};

/// A byte of a mapped file: the same in all processes, whatever its address.
struct MappedByte {
  std::uint64_t device = 0;  // as in stacks::Mapping
  std::uint64_t inode = 0;
  std::uint64_t offset = 0;
  auto operator<=>(const MappedByte&) const = default;
};

class WaitContext {
 public:
  /// `maps`: what other readers of this snapshot have read; nullptr = nothing.
  WaitContext(const JobTree& job, const std::vector<stacks::ProcessStacks>& stacks,
              stacks::MapsTable* maps = nullptr);

  [[nodiscard]] const JobTree& job() const {
    return job_;
  }
  [[nodiscard]] const stacks::ProcessStacks* stacks_of(pid_t pid) const;
  DescriptorTable& descriptors() {
    return descriptors_;
  }
  TcpTable& tcp(pid_t pid);
  const std::map<std::uint64_t, std::uint64_t>& unix_sockets();
  const std::vector<FileLock>& file_locks();
  stacks::LiveMemory& memory(pid_t pid);
  /// Of a process of the job.
  const stacks::Maps& maps(pid_t pid);
  /// Running processes of the job that map this byte of a file; if the job is a single process,
  /// those of the whole machine, because its relatives were left out.
  const std::set<pid_t>& mappers(const MappedByte& byte);

  /// The pid here for a pid that `process` uses; equal outside containers.
  [[nodiscard]] pid_t outer_pid(const ProcessRow& process, pid_t inner) const;

  /// "rank 1 (pid 77)", "launcher (pid 5)", "pid 9 (bash, not of this job)".
  [[nodiscard]] std::string describe(pid_t pid) const;

 private:
  const JobTree& job_;
  std::map<pid_t, const stacks::ProcessStacks*> stacks_;
  DescriptorTable descriptors_;
  TcpTable tcp_;
  std::optional<std::map<std::uint64_t, std::uint64_t>> unix_;
  std::optional<std::vector<FileLock>> locks_;
  std::map<pid_t, std::unique_ptr<stacks::LiveMemory>> memory_;
  stacks::MapsTable own_maps_;
  stacks::MapsTable& maps_;
  std::map<MappedByte, std::set<pid_t>> mappers_;
};

/// Waits that Python code shows: store keys, import locks, lock files.
std::optional<WaitTarget> python_wait(WaitContext& context, const WaitingThread& waiting);
/// The GIL, mutexes, joins of threads, semaphores.
std::optional<WaitTarget> lock_wait(WaitContext& context, const WaitingThread& waiting);
/// Maximum seconds until the thread's system call returns by itself; nothing if it has no limit.
std::optional<double> time_limit(WaitContext& context, const WaitingThread& waiting);
/// A sleep that ends by itself.
std::optional<WaitTarget> timer_wait(WaitContext& context, const WaitingThread& waiting);
/// For read, write, poll and select; empty for other calls.
std::vector<AwaitedDescriptor> awaited_descriptors(WaitContext& context,
                                                   const WaitingThread& waiting);
/// By the system call: children, descriptors, file locks.
std::optional<WaitTarget> call_wait(WaitContext& context, const WaitingThread& waiting);
/// The meaning of waiting for one descriptor; nothing for descriptors without a process at the
/// other end (eventfd, timers).
std::optional<WaitTarget> descriptor_wait(WaitContext& context, const JobProcess& process, int fd,
                                          Direction direction);
/// Several descriptors at once (poll): one target if they agree, else all of them in `detail`.
std::optional<WaitTarget> any_of(std::vector<WaitTarget> targets);

}  // namespace ddpdoctor::sources
