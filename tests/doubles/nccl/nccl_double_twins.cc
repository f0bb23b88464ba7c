// SPDX-License-Identifier: Apache-2.0
// The second entry points of the collectives, which NCCL has since 2.31.
#include <cstddef>

#if NCCL_DOUBLE_VERSION >= 23102
extern "C" {

int ncclAllReduce(const void*, void*, std::size_t, int type, int op, void* comm, void* stream);
int ncclBroadcast(const void*, void*, std::size_t, int type, int root, void* comm, void* stream);
int ncclReduce(const void*, void*, std::size_t, int type, int op, int root, void* comm,
               void* stream);
int ncclAllGather(const void*, void*, std::size_t, int type, void* comm, void* stream);
int ncclReduceScatter(const void*, void*, std::size_t, int type, int op, void* comm, void* stream);

int ncclAllReduceConfig(const void* from, void* to, std::size_t count, int type, int op, void* comm,
                        void* stream, const void*) {
  return ncclAllReduce(from, to, count, type, op, comm, stream);
}
int ncclBroadcastConfig(const void* from, void* to, std::size_t count, int type, int root,
                        void* comm, void* stream, const void*) {
  return ncclBroadcast(from, to, count, type, root, comm, stream);
}
int ncclReduceConfig(const void* from, void* to, std::size_t count, int type, int op, int root,
                     void* comm, void* stream, const void*) {
  return ncclReduce(from, to, count, type, op, root, comm, stream);
}
int ncclAllGatherConfig(const void* from, void* to, std::size_t count, int type, void* comm,
                        void* stream, const void*) {
  return ncclAllGather(from, to, count, type, comm, stream);
}
int ncclReduceScatterConfig(const void* from, void* to, std::size_t count, int type, int op,
                            void* comm, void* stream, const void*) {
  return ncclReduceScatter(from, to, count, type, op, comm, stream);
}
}
#endif
