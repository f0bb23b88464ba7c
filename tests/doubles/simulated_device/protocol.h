// SPDX-License-Identifier: Apache-2.0
// What a rank and its simulated device share: a file that both map, with the queues of the rank's
// streams. The device writes results into the rank's own memory, as a GPU does.
#pragma once

#include <atomic>
#include <cstdint>

namespace simulated {

inline constexpr std::uint32_t kMagic = 0x53494d47;
inline constexpr int kStreams = 32;
// Launches that a driver accepts before the host waits.
inline constexpr std::uint64_t kQueue = 1024;
inline constexpr int kMeetings = 128;

enum class Kind : std::uint32_t {
  kAllReduce,
  kBroadcast,
  kReduce,
  kAllGather,
  kReduceScatter,
  kSend,
  kReceive,
  kWaitFor,  // until another stream of this rank has reached `count`
};

/// A kernel in a stream's queue. `together`: this many further commands run at the same time.
struct Command {
  Kind kind;
  std::int32_t peer;  // or root, or stream
  std::uint64_t communicator;
  std::int32_t rank;
  std::int32_t size;
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t count;
  std::int32_t type;
  std::int32_t op;
  std::uint32_t together;
  std::uint32_t unused;
};

struct Stream {
  std::atomic<std::uint64_t> launched;
  std::atomic<std::uint64_t> done;
  std::atomic<std::uint32_t> bell;  // a futex, woken at each launch
  std::atomic<std::uint32_t> used;
  Command queue[kQueue];
};

/// A rank waits in it until all ranks of a communicator have arrived. `state`: 0 free, 1 waiting, 2
/// complete.
struct Meeting {
  std::atomic<std::uint32_t> state;
  std::int32_t color;
  std::uint64_t communicator;
  std::int32_t rank;
  std::int32_t size;
  std::int32_t key;
  std::int32_t new_rank;
  std::int32_t new_size;
};

struct Device {
  std::atomic<std::uint32_t> magic;
  std::int32_t pid;
  std::atomic<std::uint64_t> aborted[64];  // communicators, 0 = free
  Meeting meetings[kMeetings];
  Stream streams[kStreams];
};

}  // namespace simulated
