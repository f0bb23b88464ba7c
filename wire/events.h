// SPDX-License-Identifier: Apache-2.0
// The events that a slot can hold. The numbers are part of the format: append, never renumber.
#pragma once

#include <cstdint>

namespace ddpdoctor::wire {

enum class EventKind : std::uint16_t {
  kNone = 0,
  kCollective = 1,  // a call of one rank: enqueued, completed, failed
  kPointToPoint = 2,
  kStore = 3,  // store get/wait/set; text = key
  kGroupCreated = 4,
  kReducerCreated = 5,
  kBackwardBegin = 6,
  kBackwardEnd = 7,
  kFork = 8,  // count = child, -1 unknown; detail = pool threads, peer = bits of CUDA devices, -1
              // CUDA not started; text = how, when not by fork
  kExec = 9,  // text = path
  kExit = 10,
  kChildExit = 11,  // count = child, peer = raw wait status
  kTeam = 12,       // first OpenMP team; count = threads asked for
  kDeadTeam = 13,   // a forked child enters a team that does not exist in it; count = the parent
  kShmOpen = 14,    // text = name; count = descriptor or -errno
  kShmUnlink = 15,
  kShmSize = 16,          // ftruncate or fallocate; count = bytes, peer = errno
  kCudaContext = 17,      // count = device, -1 = started without one; text = function
  kCudaAfterFork = 18,    // count = device, peer = pid that had started CUDA, text = function
  kDescriptorsFull = 19,  // EMFILE, ENFILE; text = the call that failed, peer = errno
  kWaitBegin = 20,
  kWaitEnd = 21,  // of 10 ms or more in libc; count = nanoseconds, object = what for, text = call
  kBarrierMonitored = 22,
  kNoSpace = 23,  // ENOSPC outside shared memory's own calls; text = call or path, peer = errno
  // during a profiling window of CUPTI (agent/cuda/cupti_plugin.h)
  kGpuWindow = 24,  // phase started, completed, or failed; text = why
  // Object = stream, text = kernel, peer = 0 for the newest kernel of the stream, 1 for the one
  // before …; phase completed = it ended (reliable only with kEndsAreTold).
  kGpuKernel = 25,
  // kOfHost: thread `count` waits in function `text` for stream or event `object`; otherwise kernel
  // `peer` of stream `object` waits for `text` of stream `count`.
  kGpuWait = 26,
  // Object = executable graph, count = number of launches, peer = NCCL calls in it, -1 unknown.
  kGraphLaunch = 27,
  // A signal that ends a child or the group it leads: count = child, peer = signal; phase completed
  // = the child was already exiting.
  kSignalSent = 28
};

enum class Phase : std::uint8_t { kEnqueued = 0, kStarted = 1, kCompleted = 2, kFailed = 3 };

/// Operations; operation_name spells them as PyTorch does.
enum class Operation : std::uint8_t {
  kUnknown = 0,
  kAllReduce = 1,
  kBroadcast = 2,
  kReduce = 3,
  kAllGather = 4,
  kGather = 5,
  kScatter = 6,
  kReduceScatter = 7,
  kAllToAll = 8,
  kBarrier = 9,
  kMonitoredBarrier = 10,
  kSend = 11,
  kRecv = 12,
  kRecvAny = 13,
  kAllReduceCoalesced = 14,
  kAllReduceSparse = 15,
  kAllGatherCoalesced = 16,
  kAllGatherIntoTensor = 17,
  kAllGatherIntoTensorCoalesced = 18,
  kReduceScatterTensor = 19,
  kReduceScatterTensorCoalesced = 20,
  kAllToAllSingle = 21,
  // Operations that only MPI has; shared ones have PyTorch's number above.
  kScan = 64,
  kExscan = 65,
  kGatherV = 66,
  kScatterV = 67,
  kAllGatherV = 68,
  kAllToAllV = 69,
  kAllToAllW = 70,
  kSendRecv = 71,  // peer and tag of the receiving half
  kProbe = 72,
  kCommDup = 73,
  kCommSplit = 74,
  kCommCreate = 75,
  // Operations that only NCCL has.
  kCommunicatorInit = 32,
  kCommunicatorSplit = 33,
  kCommunicatorEnd = 34,
  kWindowRegister = 35,
  kDeviceCommunicator = 36,
  kPutSignal = 37,
  kSignal = 38,
  kWaitSignal = 39
};

constexpr const char* operation_name(Operation operation) {
  switch (operation) {
    case Operation::kAllReduce:
      return "all_reduce";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kReduce:
      return "reduce";
    case Operation::kAllGather:
      return "all_gather";
    case Operation::kGather:
      return "gather";
    case Operation::kScatter:
      return "scatter";
    case Operation::kReduceScatter:
      return "reduce_scatter";
    case Operation::kAllToAll:
      return "all_to_all";
    case Operation::kBarrier:
      return "barrier";
    case Operation::kMonitoredBarrier:
      return "monitored_barrier";
    case Operation::kSend:
      return "send";
    case Operation::kRecv:
    case Operation::kRecvAny:
      return "recv";
    case Operation::kAllReduceCoalesced:
      return "all_reduce_coalesced";
    case Operation::kAllReduceSparse:
      return "all_reduce_sparse";
    case Operation::kAllGatherCoalesced:
      return "all_gather_coalesced";
    case Operation::kAllGatherIntoTensor:
      return "all_gather_into_tensor";
    case Operation::kAllGatherIntoTensorCoalesced:
      return "all_gather_into_tensor_coalesced";
    case Operation::kReduceScatterTensor:
      return "reduce_scatter_tensor";
    case Operation::kReduceScatterTensorCoalesced:
      return "reduce_scatter_tensor_coalesced";
    case Operation::kAllToAllSingle:
      return "all_to_all_single";
    case Operation::kScan:
      return "scan";
    case Operation::kExscan:
      return "exscan";
    case Operation::kGatherV:
      return "gatherv";
    case Operation::kScatterV:
      return "scatterv";
    case Operation::kAllGatherV:
      return "all_gatherv";
    case Operation::kAllToAllV:
      return "all_to_allv";
    case Operation::kAllToAllW:
      return "all_to_allw";
    case Operation::kSendRecv:
      return "sendrecv";
    case Operation::kProbe:
      return "probe";
    case Operation::kCommDup:
      return "comm_dup";
    case Operation::kCommSplit:
      return "comm_split";
    case Operation::kCommCreate:
      return "comm_create";
    case Operation::kCommunicatorInit:
      return "comm_init";
    case Operation::kCommunicatorSplit:
      return "comm_split";
    case Operation::kCommunicatorEnd:
      return "comm_destroy";
    case Operation::kWindowRegister:
      return "window_register";
    case Operation::kDeviceCommunicator:
      return "device_comm_create";
    case Operation::kPutSignal:
      return "put_signal";
    case Operation::kSignal:
      return "signal";
    case Operation::kWaitSignal:
      return "wait_signal";
    case Operation::kUnknown:
      break;
  }
  return "unknown";
}

/// Bits of Slot::detail for calls.
inline constexpr std::uint32_t kAsync = 1;
inline constexpr std::uint32_t kTensorsMany = 2;  // several tensors: count is their sum
inline constexpr std::uint32_t kTagShift = 8;     // bits 8…31: tag of a message + 1, 0 = none
inline constexpr std::uint32_t kGrouped = 4;      // between ncclGroupStart and ncclGroupEnd
// Runs on a GPU; object is its stream. Its end is recorded only with kTracked.
inline constexpr std::uint32_t kOnStream = 8;
inline constexpr std::uint32_t kTracked = 16;
// Captured into a CUDA graph, which runs it 0 … n times.
inline constexpr std::uint32_t kCaptured = 32;
// NCCL's last answer was ncclInProgress: the call may not have reached its stream.
inline constexpr std::uint32_t kInProgress = 64;

/// Bits of Slot::detail for kGpuKernel and kGpuWait.
inline constexpr std::uint32_t kOfHost = 1;
inline constexpr std::uint32_t kEndsAreTold = 2;

}  // namespace ddpdoctor::wire
