// SPDX-License-Identifier: Apache-2.0
// A program that is linked to NCCL, with one rank: sums once and prints the sum, or measures its
// calls. nccl_program               → "sum 3, code of a null communicator 4" nccl_program bench
// CALLS [GROUP]  → nanoseconds of processor time per ncclAllReduce, the best of twenty rounds;
// GROUP: this many calls between ncclGroupStart and End nccl_program graph CALLS          launches
// a CUDA graph with this many calls five times
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

struct UniqueId {
  char bytes[128];
};

extern "C" {
int ncclGetUniqueId(UniqueId* id);
int ncclCommInitRank(void** comm, int size, UniqueId id, int rank);
int ncclAllReduce(const void* from, void* to, std::size_t count, int type, int op, void* comm,
                  void* stream);
int ncclBcast(void* memory, std::size_t count, int type, int root, void* comm, void* stream);
int ncclCommDestroy(void* comm);
int ncclGroupStart();
int ncclGroupEnd();
int cudaStreamCreate(void** stream);
int cudaStreamSynchronize(void* stream);
int cudaStreamBeginCapture(void* stream, int mode);
int cudaStreamEndCapture(void* stream, void** graph);
int cudaGraphInstantiate(void** executable, void* graph, unsigned long long flags);
int cudaGraphLaunch(void* executable, void* stream);
}

namespace {

constexpr int kFloat32 = 7;

/// Of all threads of this process, so that the work of a background thread is counted, too.
double processor_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

/// `group` 0: without groups.
double nanoseconds_per_call(void* comm, void* stream, int calls, int group) {
  float data[4] = {1, 2, 3, 4};
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const double begin = processor_nanoseconds();
    for (int i = 0; i < calls; ++i) {
      if (group > 0 && i % group == 0) {
        ncclGroupStart();
      }
      ncclAllReduce(data, data, 4, kFloat32, 0, comm, stream);
      if (group > 0 && (i % group == group - 1 || i == calls - 1)) {
        ncclGroupEnd();
      }
    }
    best = std::min(best, (processor_nanoseconds() - begin) / calls);
  }
  return best;
}

int launch_graph(void* comm, void* stream, int calls) {
  float data[4] = {1, 2, 3, 4};
  void* graph = nullptr;
  void* executable = nullptr;
  cudaStreamBeginCapture(stream, 0);
  for (int i = 0; i < calls; ++i) {
    ncclAllReduce(data, data, 4, kFloat32, 0, comm, stream);
  }
  cudaStreamEndCapture(stream, &graph);
  int failed = cudaGraphInstantiate(&executable, graph, 0);
  for (int i = 0; i < 5; ++i) {
    failed += cudaGraphLaunch(executable, stream);
  }
  return failed + cudaStreamSynchronize(stream);
}

}  // namespace

int main(int argc, char** argv) {
  void* comm = nullptr;
  void* stream = nullptr;
  UniqueId id{};
  if (cudaStreamCreate(&stream) != 0 || ncclGetUniqueId(&id) != 0 ||
      ncclCommInitRank(&comm, 1, id, 0) != 0) {
    return 1;
  }
  if (argc > 2 && std::strcmp(argv[1], "bench") == 0) {
    std::printf("%.1f\n", nanoseconds_per_call(comm, stream, std::atoi(argv[2]),
                                               argc > 3 ? std::atoi(argv[3]) : 0));
    return 0;
  }
  if (argc > 2 && std::strcmp(argv[1], "graph") == 0) {
    return launch_graph(comm, stream, std::atoi(argv[2]));
  }
  float value = 3;
  ncclAllReduce(&value, &value, 1, kFloat32, 0, comm, stream);
  ncclBcast(&value, 1, kFloat32, 0, comm, stream);
  cudaStreamSynchronize(stream);
  std::printf("sum %.0f, code of a null communicator %d\n", static_cast<double>(value),
              ncclAllReduce(&value, &value, 1, kFloat32, 0, nullptr, stream));
  return ncclCommDestroy(comm);
}
