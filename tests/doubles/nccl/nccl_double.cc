// SPDX-License-Identifier: Apache-2.0
// A libnccl.so.2 with the real ABI on host memory, for tests. Ranks exchange bytes through queues
// in shared memory without sizes, types or names, as NCCL's ranks do: the effects of ranks that
// disagree are not programmed, they follow from this. NCCL_DOUBLE_VERSION sets the version that it
// reports; functions of later versions are absent.
#include "tests/doubles/nccl/nccl_double.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/doubles/nccl/cuda_double.h"
#include "tests/doubles/nccl/nccl_profiler_double.h"
#include "tests/doubles/nccl/nccl_transport.h"

using namespace ddpdoctor::doubles;

namespace ddpdoctor::doubles {

thread_local int group_depth = 0;
thread_local std::vector<HostCall> held_inits;

}  // namespace ddpdoctor::doubles

namespace {

struct Launch {
  Communicator* comm;
  void* stream;
  std::function<void()> kernel;     // a collective
  std::vector<Transfer> transfers;  // or its messages
};
thread_local std::vector<Launch> held;

void start(Launch launch) {
  if (launch.kernel) {
    ddpdoctor::doubles::enqueue(launch.stream, std::move(launch.kernel), "ncclDevKernel_Generic");
    return;
  }
  ddpdoctor::doubles::enqueue(
      launch.stream,
      [comm = launch.comm, moves = std::move(launch.transfers)]() mutable {
        progress(*comm, moves);
      },
      "ncclDevKernel_SendRecv");
}

void faults(Communicator& comm) {
  const int call = comm.calls.fetch_add(1) + 1;
  if (comm.rank == number_from("NCCL_DOUBLE_DIE_RANK", -1) &&
      call == number_from("NCCL_DOUBLE_DIE_AT", -1)) {
    raise(SIGKILL);
  }
}

int launch(void* handle, void* stream, std::function<void(Communicator&)> body) {
  if (handle == nullptr || refuses(static_cast<Communicator*>(handle))) {
    return kInvalidArgument;
  }
  static const bool idle = std::getenv("CUDA_DOUBLE_IDLE") != nullptr;
  if (idle) {
    return kSuccess;
  }
  auto* const comm = static_cast<Communicator*>(handle);
  faults(*comm);
  Launch one{comm, stream, [comm, body = std::move(body)] { body(*comm); }, {}};
  if (comm->calls == number_from("NCCL_DOUBLE_STALLS_AT", -1)) {
    one.kernel = [comm] {  // the transport: all ranks have arrived, and nothing moves
      while (!comm->aborted) {
        pause_a_little();
      }
    };
  }
  if (group_depth > 0) {
    held.push_back(std::move(one));
    return kSuccess;
  }
  return carry_out({comm}, [one] {
    start(one);
    return kSuccess;
  });
}

int message(void* handle, void* stream, Transfer transfer) {
  auto* const comm = static_cast<Communicator*>(handle);
  if (refuses(comm)) {
    return kInvalidArgument;
  }
  faults(*comm);
  if (group_depth > 0) {
    for (Launch& one : held) {
      if (!one.kernel && one.comm == comm && one.stream == stream) {
        one.transfers.push_back(transfer);
        return kSuccess;
      }
    }
    held.push_back({comm, stream, {}, {transfer}});
    return kSuccess;
  }
  return carry_out({comm}, [one = Launch{comm, stream, {}, {transfer}}] {
    start(one);
    return kSuccess;
  });
}

/// What the end of a group does: inits at the same time, then the launches.
int run_group(const std::vector<HostCall>& calls, const std::vector<Launch>& launches) {
  std::atomic<int> result = kSuccess;
  std::vector<std::thread> threads;
  threads.reserve(calls.size());
  for (const HostCall& one : calls) {
    threads.emplace_back([&result, &one] { result = std::max(result.load(), one.run()); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const Launch& one : launches) {
    start(one);
  }
  return result;
}

}  // namespace

extern "C" {

int ncclGroupStart() {
  ++group_depth;
  return kSuccess;
}
int ncclGroupEnd() {
  if (group_depth == 0) {
    return 5;
  }
  if (--group_depth > 0) {
    return kSuccess;
  }
  std::vector<Communicator*> communicators;
  for (const HostCall& one : held_inits) {
    communicators.push_back(one.communicator);
  }
  for (const Launch& one : held) {
    communicators.push_back(one.comm);
  }
  return carry_out(std::move(communicators),
                   [calls = std::exchange(held_inits, {}), launches = std::exchange(held, {})] {
                     return run_group(calls, launches);
                   });
}
#if NCCL_DOUBLE_VERSION >= 22203
int ncclGroupSimulateEnd(void*) {
  held.clear();
  group_depth = 0;
  return kSuccess;
}
#endif

int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int op, void* comm,
                  void* stream) {
  profile(comm, {"AllReduce", count, type == 7 ? "ncclFloat32" : "ncclInt8", 0, stream});
  return launch(comm, stream, [=](Communicator& own) {
    std::vector<char> sum(static_cast<const char*>(from),
                          static_cast<const char*>(from) + count * size_of(type));
    reduce_chain(own, sum, count, type, op);
    broadcast_ring(own, sum.data(), sum.size(), own.size - 1);
    std::memcpy(to, sum.data(), sum.size());
  });
}
int ncclBroadcast(const void* from, void* to, std::size_t count, int type, int root, void* comm,
                  void* stream) {
  profile(comm, {"Broadcast", count, type == 7 ? "ncclFloat32" : "ncclInt8", root, stream});
  return launch(comm, stream, [=](Communicator& own) {
    std::memmove(to, own.rank == root ? from : to, count * size_of(type));
    broadcast_ring(own, static_cast<char*>(to), count * size_of(type), root);
  });
}
/// Calls the other function by its public name, as NCCL does.
int ncclBcast(void* memory, std::size_t count, int type, int root, void* comm, void* stream) {
  return ncclBroadcast(memory, memory, count, type, root, comm, stream);
}
int ncclReduce(const void* from, void* to, std::size_t count, int type, int op, int root,
               void* comm, void* stream) {
  return launch(comm, stream, [=](Communicator& own) {
    std::vector<char> sum(static_cast<const char*>(from),
                          static_cast<const char*>(from) + count * size_of(type));
    reduce_chain(own, sum, count, type, op);
    if (own.rank == own.size - 1 && root != own.rank) {
      run(own, {sending(own, root, sum.data(), sum.size())});
    } else if (own.rank == root) {
      if (root != own.size - 1) {
        run(own, {receiving(own, own.size - 1, sum.data(), sum.size())});
      }
      std::memcpy(to, sum.data(), sum.size());
    }
  });
}
int ncclAllGather(const void* from, void* to, std::size_t count, int type, void* comm,
                  void* stream) {
  return launch(comm, stream, [=](Communicator& own) {
    all_gather_ring(own, from, static_cast<char*>(to), count * size_of(type));
  });
}
int ncclReduceScatter(const void* from, void* to, std::size_t count, int type, int op, void* comm,
                      void* stream) {
  return launch(comm, stream, [=](Communicator& own) {
    const std::size_t all = count * static_cast<std::size_t>(own.size);
    std::vector<char> sum(static_cast<const char*>(from),
                          static_cast<const char*>(from) + all * size_of(type));
    reduce_chain(own, sum, all, type, op);
    broadcast_ring(own, sum.data(), sum.size(), own.size - 1);
    std::memcpy(to, sum.data() + static_cast<std::size_t>(own.rank) * count * size_of(type),
                count * size_of(type));
  });
}
int ncclSend(const void* from, std::size_t count, int type, int peer, void* comm, void* stream) {
  return message(comm, stream,
                 sending(*static_cast<Communicator*>(comm), peer, from, count * size_of(type)));
}
int ncclRecv(void* to, std::size_t count, int type, int peer, void* comm, void* stream) {
  return message(comm, stream,
                 receiving(*static_cast<Communicator*>(comm), peer, to, count * size_of(type)));
}

#if NCCL_DOUBLE_VERSION >= 22803
int ncclAlltoAll(const void* from, void* to, std::size_t count, int type, void* comm,
                 void* stream) {
  return launch(comm, stream, [=](Communicator& own) {
    const std::size_t bytes = count * size_of(type);
    std::vector<Transfer> all;
    for (int peer = 0; peer < own.size; ++peer) {
      const std::size_t at = static_cast<std::size_t>(peer) * bytes;
      all.push_back(sending(own, peer, static_cast<const char*>(from) + at, bytes));
      all.push_back(receiving(own, peer, static_cast<char*>(to) + at, bytes));
    }
    progress(own, all);
  });
}
int ncclGather(const void* from, void* to, std::size_t count, int type, int root, void* comm,
               void* stream) {
  return launch(comm, stream, [=](Communicator& own) {
    const std::size_t bytes = count * size_of(type);
    std::vector<Transfer> all{sending(own, root, from, bytes)};
    for (int peer = 0; own.rank == root && peer < own.size; ++peer) {
      all.push_back(receiving(
          own, peer, static_cast<char*>(to) + static_cast<std::size_t>(peer) * bytes, bytes));
    }
    progress(own, all);
  });
}
int ncclScatter(const void* from, void* to, std::size_t count, int type, int root, void* comm,
                void* stream) {
  return launch(comm, stream, [=](Communicator& own) {
    const std::size_t bytes = count * size_of(type);
    std::vector<Transfer> all{receiving(own, root, to, bytes)};
    for (int peer = 0; own.rank == root && peer < own.size; ++peer) {
      all.push_back(sending(own, peer,
                            static_cast<const char*>(from) + static_cast<std::size_t>(peer) * bytes,
                            bytes));
    }
    progress(own, all);
  });
}
#endif

#if NCCL_DOUBLE_VERSION >= 22902
int ncclSignal(int peer, int, int, unsigned, void* comm, void* stream) {
  return launch(comm, stream,
                [=](Communicator& own) { own.shared->signals[own.rank][peer].fetch_add(1); });
}
int ncclWaitSignal(int count, void* descriptions, void* comm, void* stream) {
  struct Description {
    int times;
    int peer;
    int signal;
    int context;
  };
  std::vector<Description> all(static_cast<Description*>(descriptions),
                               static_cast<Description*>(descriptions) + count);
  return launch(comm, stream, [all](Communicator& own) {
    for (const Description& one : all) {
      own.waited[one.peer] += static_cast<std::uint64_t>(one.times);
      while (own.shared->signals[one.peer][own.rank].load() < own.waited[one.peer] &&
             !own.aborted) {
        pause_a_little();
      }
    }
  });
}
#endif
}
