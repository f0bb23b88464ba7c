// SPDX-License-Identifier: Apache-2.0
// The kernels of the simulated device: rings and chains over byte queues.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <sys/uio.h>

#include "protocol.h"

namespace simulated {

struct Rank {
  Device* device = nullptr;
  pid_t pid = 0;
  std::atomic<bool> gone{false};

  [[nodiscard]] bool aborted(std::uint64_t communicator) const {
    return std::any_of(std::begin(device->aborted), std::end(device->aborted),
                       [communicator](const auto& one) { return one.load() == communicator; });
  }
};

inline constexpr std::size_t kSlots = 8;              // messages buffered between two ranks
inline constexpr std::size_t kBuffered = 128 * 1024;  // bytes buffered between two ranks

/// What one kernel sends to another rank. It has only a length: a kernel that expects another
/// length waits forever, one that expects this length takes it, whatever it was meant for.
struct Message {
  std::size_t length;
  std::deque<char> bytes;
  bool taken = false;  // by a kernel that expects this length
};

/// Messages in flight, by (from, to). One lock and one condition variable for all: jobs are small.
struct Communicator {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Message>>> queues;
};

using Bytes = std::vector<char>;

/// The execution of one command: what it needs of the rank and the communicator.
struct Kernel {
  Rank& rank;
  Communicator& on;
  const Command& command;

  [[nodiscard]] bool over() const {
    return rank.gone || rank.aborted(command.communicator);
  }

  Bytes load(std::uint64_t address, std::size_t size) const {
    Bytes out(size);
    const iovec mine{out.data(), size};
    const iovec theirs{reinterpret_cast<void*>(address), size};
    process_vm_readv(rank.pid, &mine, 1, &theirs, 1, 0);
    return out;
  }

  void store(const Bytes& bytes, std::uint64_t address) const {
    const iovec mine{const_cast<char*>(bytes.data()), bytes.size()};
    const iovec theirs{reinterpret_cast<void*>(address), bytes.size()};
    process_vm_writev(rank.pid, &mine, 1, &theirs, 1, 0);
  }
};

/// One direction of one transfer.
struct Transfer {
  int from;
  int to;
  bool sends;
  Bytes bytes;
  std::size_t moved = 0;
  std::shared_ptr<Message> message{};

  /// The message that it fills or takes; null while there is none.
  void find_message(std::deque<std::shared_ptr<Message>>& queue) {
    if (sends) {
      if (queue.size() >= kSlots) {
        return;
      }
      message = queue.emplace_back(std::make_shared<Message>(bytes.size()));
      return;
    }
    const auto next =
        std::find_if(queue.begin(), queue.end(), [](const auto& one) { return !one->taken; });
    if (next != queue.end() && (*next)->length == bytes.size()) {
      message = *next;
      message->taken = true;
    }
  }

  /// True if something was moved. Call with the communicator's lock held.
  bool step(Communicator& on) {
    auto& queue = on.queues[{from, to}];
    if (message == nullptr && moved < bytes.size()) {
      find_message(queue);
    }
    if (message == nullptr) {
      return false;
    }
    auto& waiting = message->bytes;
    const std::size_t left = bytes.size() - moved;
    const std::size_t part = std::min(left, sends ? kBuffered - waiting.size() : waiting.size());
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(moved);
    if (sends) {
      waiting.insert(waiting.end(), at, at + static_cast<std::ptrdiff_t>(part));
    } else {
      std::copy_n(waiting.begin(), part, at);
      waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(part));
    }
    moved += part;
    if (!sends && moved == bytes.size()) {
      std::erase(queue, message);
      message = nullptr;
    }
    return part > 0;
  }
};

/// All transfers at the same time, until all are done, or forever.
inline void progress(const Kernel& kernel, std::vector<Transfer>& transfers) {
  std::unique_lock lock(kernel.on.mutex);
  for (;;) {
    bool moved = false;
    bool open = false;
    for (Transfer& one : transfers) {
      moved = one.step(kernel.on) || moved;
      open = open || one.moved < one.bytes.size();
    }
    if (moved) {
      kernel.on.changed.notify_all();
    }
    if (!open || kernel.over()) {
      return;
    }
    if (!moved) {
      kernel.on.changed.wait_for(lock, std::chrono::milliseconds(100));
    }
  }
}

inline void send(const Kernel& kernel, int to, const Bytes& bytes) {
  std::vector<Transfer> one{{kernel.command.rank, to, true, bytes}};
  progress(kernel, one);
}

inline Bytes receive(const Kernel& kernel, int from, std::size_t size) {
  std::vector<Transfer> one{{from, kernel.command.rank, false, Bytes(size)}};
  progress(kernel, one);
  return std::move(one.front().bytes);
}

inline std::size_t size_of(int type) {
  constexpr std::size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? kSizes[type] : 1;
}

template <typename T>
void fold(Bytes& into, const Bytes& other, int op, int size) {
  auto* const a = reinterpret_cast<T*>(into.data());
  const auto* const b = reinterpret_cast<const T*>(other.data());
  for (std::size_t i = 0; i < std::min(into.size(), other.size()) / sizeof(T); ++i) {
    a[i] = op == 1   ? static_cast<T>(a[i] * b[i])
           : op == 2 ? std::max(a[i], b[i])
           : op == 3 ? std::min(a[i], b[i])
                     : static_cast<T>(a[i] + b[i]);
  }
  (void)size;
}

inline void fold(Bytes& into, const Bytes& other, const Command& command) {
  switch (command.type) {
    case 2:
      return fold<std::int32_t>(into, other, command.op, command.size);
    case 4:
      return fold<std::int64_t>(into, other, command.op, command.size);
    case 7:
      return fold<float>(into, other, command.op, command.size);
    case 8:
      return fold<double>(into, other, command.op, command.size);
    default:
      return fold<unsigned char>(into, other, command.op, command.size);
  }
}

/// Divides by the size if the command asks for the mean.
inline void finish(Bytes& sum, const Command& command) {
  if (command.op != 4) {
    return;
  }
  if (command.type == 7) {
    for (std::size_t i = 0; i < sum.size() / sizeof(float); ++i) {
      reinterpret_cast<float*>(sum.data())[i] /= static_cast<float>(command.size);
    }
  } else if (command.type == 8) {
    for (std::size_t i = 0; i < sum.size() / sizeof(double); ++i) {
      reinterpret_cast<double*>(sum.data())[i] /= command.size;
    }
  }
}

/// Along the chain 0 → 1 → …; each rank adds its own values, the last one has the result.
inline Bytes reduce_chain(const Kernel& kernel, Bytes own) {
  const Command& command = kernel.command;
  if (command.rank > 0) {
    fold(own, receive(kernel, command.rank - 1, own.size()), command);
  }
  if (command.rank + 1 < command.size) {
    send(kernel, command.rank + 1, own);
  } else {
    finish(own, command);
  }
  return own;
}

/// Around the ring from `root`.
inline Bytes broadcast_ring(const Kernel& kernel, Bytes bytes, int root) {
  const Command& command = kernel.command;
  const int next = (command.rank + 1) % command.size;
  if (command.rank != root) {
    bytes = receive(kernel, (command.rank + command.size - 1) % command.size, bytes.size());
  }
  if (next != root) {
    send(kernel, next, bytes);
  }
  return bytes;
}

inline Bytes gather_ring(const Kernel& kernel, const Bytes& own) {
  const Command& command = kernel.command;
  Bytes all(own.size() * static_cast<std::size_t>(command.size));
  const auto at = [&](int rank) {
    return all.begin() + static_cast<std::ptrdiff_t>(own.size()) * rank;
  };
  std::copy(own.begin(), own.end(), at(command.rank));
  for (int step = 0; step + 1 < command.size; ++step) {
    const int mine = (command.rank + command.size - step) % command.size;
    const int before = (command.rank + command.size - 1) % command.size;
    const int others = (mine + command.size - 1) % command.size;
    std::vector<Transfer> both{
        {command.rank, (command.rank + 1) % command.size, true,
         Bytes(at(mine), at(mine) + static_cast<std::ptrdiff_t>(own.size()))},
        {before, command.rank, false, Bytes(own.size())}};
    progress(kernel, both);
    std::copy(both[1].bytes.begin(), both[1].bytes.end(), at(others));
  }
  return all;
}

inline void reduce_to_root(const Kernel& kernel, std::size_t bytes) {
  const Command& command = kernel.command;
  const Bytes sum = reduce_chain(kernel, kernel.load(command.from, bytes));
  const int last = command.size - 1;
  if (command.rank == last && command.peer != last) {
    send(kernel, command.peer, sum);
  } else if (command.rank == command.peer) {
    const Bytes result = command.peer == last ? sum : receive(kernel, last, bytes);
    if (!kernel.over()) {
      kernel.store(result, command.to);
    }
  }
}

inline void run_messages(Rank& rank, Communicator& on, const std::vector<Command>& commands) {
  const Kernel kernel{rank, on, commands.front()};
  std::vector<Transfer> all;
  for (const Command& one : commands) {
    const std::size_t bytes = one.count * size_of(one.type);
    const bool sends = one.kind == Kind::kSend;
    all.push_back({sends ? one.rank : one.peer, sends ? one.peer : one.rank, sends,
                   sends ? kernel.load(one.from, bytes) : Bytes(bytes)});
  }
  progress(kernel, all);
  for (std::size_t i = 0; i < all.size() && !kernel.over(); ++i) {
    if (!all[i].sends) {
      kernel.store(all[i].bytes, commands[i].to);
    }
  }
}

inline void run(Rank& rank, Communicator& on, const std::vector<Command>& commands) {
  const Command& command = commands.front();
  const Kernel kernel{rank, on, command};
  const std::size_t bytes = command.count * size_of(command.type);
  Bytes result;
  switch (command.kind) {
    case Kind::kAllReduce:
      result = broadcast_ring(kernel, reduce_chain(kernel, kernel.load(command.from, bytes)),
                              command.size - 1);
      break;
    case Kind::kBroadcast:
      result = broadcast_ring(kernel, kernel.load(command.from, bytes), command.peer);
      break;
    case Kind::kReduce:
      return reduce_to_root(kernel, bytes);
    case Kind::kAllGather:
      result = gather_ring(kernel, kernel.load(command.from, bytes));
      break;
    case Kind::kReduceScatter: {
      const Bytes all = broadcast_ring(
          kernel,
          reduce_chain(kernel,
                       kernel.load(command.from, bytes * static_cast<std::size_t>(command.size))),
          command.size - 1);
      const auto at = all.begin() + static_cast<std::ptrdiff_t>(bytes) * command.rank;
      result.assign(at, at + static_cast<std::ptrdiff_t>(bytes));
      break;
    }
    default:
      return run_messages(rank, on, commands);
  }
  if (!kernel.over()) {
    kernel.store(result, command.to);
  }
}

}  // namespace simulated
