// SPDX-License-Identifier: Apache-2.0
// The functions of libnccl.so.2 that ProcessGroupNCCL calls, and the conversion of torch's types to
// NCCL's.
#pragma once

#include <cstddef>

#include <torch/csrc/distributed/c10d/Types.hpp>

struct UniqueId {
  char bytes[128];
};

extern "C" {
int ncclGetUniqueId(UniqueId* id);
int ncclCommInitRank(void** comm, int size, UniqueId id, int rank);
int ncclCommSplit(void* parent, int color, int key, void** out, void* config);
int ncclCommDestroy(void* comm);
int ncclCommAbort(void* comm);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllReduce(const void*, void*, std::size_t, int type, int op, void* comm, void* stream);
int ncclBroadcast(const void*, void*, std::size_t, int type, int root, void* comm, void* stream);
int ncclReduce(const void*, void*, std::size_t, int type, int op, int root, void* comm,
               void* stream);
int ncclAllGather(const void*, void*, std::size_t, int type, void* comm, void* stream);
int ncclReduceScatter(const void*, void*, std::size_t, int type, int op, void* comm, void* stream);
int ncclSend(const void*, std::size_t, int type, int peer, void* comm, void* stream);
int ncclRecv(void*, std::size_t, int type, int peer, void* comm, void* stream);
}

namespace c10d {

inline int nccl_type(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kChar:
      return 0;
    case at::kInt:
      return 2;
    case at::kLong:
      return 4;
    case at::kHalf:
      return 6;
    case at::kFloat:
      return 7;
    case at::kDouble:
      return 8;
    case at::kBFloat16:
      return 9;
    default:
      return 1;
  }
}

inline int nccl_op(const ReduceOp& op) {
  switch (static_cast<ReduceOp::RedOpType>(op)) {
    case ReduceOp::PRODUCT:
      return 1;
    case ReduceOp::MAX:
      return 2;
    case ReduceOp::MIN:
      return 3;
    case ReduceOp::AVG:
      return 4;
    default:
      return 0;
  }
}

}  // namespace c10d
