// SPDX-License-Identifier: Apache-2.0
// The table: frames that say what a thread does. Names from torch 1.13–2.13, CPython 3.8–3.14,
// glibc, libstdc++, NCCL and gloo.
#include <algorithm>
#include <array>

#include "collector/graph/activity_rules.h"

namespace ddpdoctor::graph {
namespace {

using enum Activity;
using enum Match;

constexpr ActivityRule kRules[] = {
    // What surrounds a wait says more than the wait itself.
    {kPython, "destroy_process_group", "torch/distributed/distributed_c10d.py", kExit, 100},
    {kPython, "_run_exitfuncs", "", kExit, 100},
    {kPython, "_exit_function", "multiprocessing/util.py", kExit, 100},
    {kPython, "_shutdown", "threading.py", kExit, 100},
    {kPython, "_exitfunc", "threading.py", kExit, 100},  // Python 2
    {kNative, "Py_FinalizeEx", "", kExit, 100},
    {kNativeExact, "Py_Finalize", "", kExit, 100},
    {kNative, "__run_exit_handlers", "", kExit, 100},
    {kNative, "wait_for_thread_shutdown", "", kExit, 100},
    {kPython, "new_group", "torch/distributed/distributed_c10d.py", kNewGroup, 98},
    {kPython, "new_subgroups", "torch/distributed/distributed_c10d.py", kNewGroup, 98},
    {kPython, "_new_group_with_tag", "torch/distributed/distributed_c10d.py", kNewGroup, 98},
    {kPython, "split_group", "torch/distributed/distributed_c10d.py", kNewGroup, 98},
    {kPython, "init_process_group", "torch/distributed/distributed_c10d.py", kRendezvous, 98},
    {kPython, "_create_c10d_store", "torch/distributed/rendezvous.py", kRendezvous, 97},
    {kPython, "", "torch/distributed/elastic/rendezvous/", kRendezvous, 97},
    {kNative, "c10d::TCPStore::TCPStore", "", kRendezvous, 96},
    {kNative, "TCPStore::waitForWorkers", "", kRendezvous, 96},
    {kPython, "_verify_param_shape_across_processes", "torch/distributed/utils.py", kDdpConstructor,
     95},
    {kPython, "_sync_module_states", "torch/distributed/utils.py", kDdpConstructor, 94},
    {kPython, "_sync_params_and_buffers", "torch/distributed/utils.py", kDdpConstructor, 94},
    {kPython, "__init__", "torch/nn/parallel/distributed.py", kDdpConstructor, 93},
    {kPython, "_ddp_init_helper", "torch/nn/parallel/distributed.py", kDdpConstructor, 93},
    {kPython, "_sync_buffers", "torch/nn/parallel/distributed.py", kDdpForward, 92},
    {kPython, "_sync_params", "torch/nn/parallel/distributed.py", kDdpForward, 92},
    {kPython, "_sync_module_buffers", "torch/nn/parallel/distributed.py", kDdpForward, 92},
    {kPython, "_pre_forward", "torch/nn/parallel/distributed.py", kDdpForward, 92},
    {kPython, "_check_sync_bufs_post_fwd", "torch/nn/parallel/distributed.py", kDdpForward, 92},
    {kPython, "_post_forward", "torch/nn/parallel/distributed.py", kDdpForward, 92},
    // Its own native calls are the reducer's; the module's forward would be a frame below it.
    {kInnermostPython, "forward", "torch/nn/parallel/distributed.py", kDdpForward, 92},
    {kNative, "c10d::Reducer::rebuild_buckets", "", kDdpForward, 92},
    {kNative, "c10d::Reducer::sync_bucket_indices", "", kDdpForward, 92},
    {kPython, "_try_get_data", "torch/utils/data/dataloader.py", kDataLoader, 90},
    {kPython, "_get_data", "torch/utils/data/dataloader.py", kDataLoader, 90},
    {kPython, "_shutdown_workers", "torch/utils/data/dataloader.py", kDataLoader, 90},
    {kPython, "wait", "torch/utils/file_baton.py", kLock, 90},
    {kPython, "", "torch/_dynamo/convert_frame.py", kCompiling, 85},
    {kPython, "", "torch/_inductor/compile_fx.py", kCompiling, 85},
    {kPython, "", "torch/_inductor/async_compile.py", kCompiling, 85},
    {kPython, "", "torch/_inductor/compile_worker/", kCompiling, 85},
    {kPython, "", "torch/_inductor/codecache.py", kCompiling, 84},
    {kPython, "autotune_to_one_config", "torch/_inductor/runtime/", kCompiling, 85},
    {kPython, "", "torch/_functorch/_aot_autograd/dispatch_and_compile_graph.py", kCompiling, 85},
    {kPython, "", "torch/_functorch/_aot_autograd/graph_compile.py", kCompiling, 85},
    {kPython, "compile", "triton/compiler/", kCompiling, 85},
    {kPython, "_bench", "triton/runtime/autotuner.py", kCompiling, 85},
    {kPython, "run_ninja", "flashinfer/jit/", kCompiling, 85},
    {kPython, "", "deep_gemm/jit/compiler.py", kCompiling, 85},
    {kNative, "mlir::PassManager::run", "", kCompiling, 85},
    {kNative, "llvm::legacy::PassManager", "", kCompiling, 85},
    {kNativeExact, "nvrtcCompileProgram", "", kCompiling, 85},
    {kModule, "", "libtriton.so", kCompiling, 85},
    {kModule, "", "libnvrtc.so", kCompiling, 85},
    {kModule, "", "libnvidia-ptxjitcompiler.so", kCompiling, 85},
    {kPython, "_jit_compile", "torch/utils/cpp_extension.py", kCompiling, 85},
    {kPython, "", "pdb.py", kInput, 88},
    {kPython, "cmdloop", "cmd.py", kInput, 88},
    {kPython, "interaction", "bdb.py", kInput, 88},
    {kNative, "builtin_input", "", kInput, 88},
    {kNative, "PyOS_Readline", "", kInput, 88},
    {kPython, "acquire", "importlib._bootstrap", kImport, 86},
    {kPython, "_lock_unlock_module", "importlib._bootstrap", kImport, 86},
    // Waiting for other ranks.
    {kPython, "_store_based_barrier", "torch/distributed/distributed_c10d.py", kStore, 66},
    {kNative, "c10d::ops::", "", kCollective, 48},
    {kPython, "wait", "torch/distributed/distributed_c10d.py", kCollective, 46},
    {kPython, "wait_tensor", "torch/distributed/_functional_collectives.py", kCollective, 46},
    {kNative, "RecvWork::wait", "", kPointToPoint, 50},
    {kNative, "SendWork::wait", "", kPointToPoint, 50},
    {kNative, "c10d::Work::wait", "", kCollective, 48},
    {kNative, "c10d::ProcessGroupGloo", "", kCollective, 47},
    {kNative, "c10d::ProcessGroupNCCL", "", kCollective, 47},
    {kNative, "c10d::ProcessGroupMPI", "", kCollective, 47},
    {kNative, "c10d::ProcessGroupUCC", "", kCollective, 47},
    {kNative, "ProcessGroupXCCL::", "", kCollective, 47},
    {kNative, "c10d::ProcessGroupCCL::", "", kCollective, 47},  // torch-ccl
    {kNative, "ProcessGroupHCCL::", "", kCollective, 47},       // torch_npu, Gaudi
    {kNative, "ProcessGroupMCCL::", "", kCollective, 47},
    {kNative, "ProcessGroupCNCL::", "", kCollective, 47},
    {kNative, "c10d::broadcast_coalesced", "", kCollective, 47},
    // The end of a communicator is not a collective, and torch's own threads call none.
    {kNative, "c10d::ProcessGroupNCCL::abort", "", kExit, 51},
    {kNative, "c10d::ProcessGroupNCCL::shutdown", "", kExit, 51},
    {kNative, "ncclCommAbort", "", kExit, 51},
    // The threads of ProcessGroupNCCL and of its copies for other devices: torch 1.8 to 2.14.
    {kNative, "::ncclCommWatchdog", "", kUnknown, 53},
    {kNative, "::hcclCommWatchdog", "", kUnknown, 53},
    {kNative, "::mcclCommWatchdog", "", kUnknown, 53},
    {kNative, "::cnclCommWatchdog", "", kUnknown, 53},
    {kNative, "::watchdogHandler", "", kUnknown, 53},
    {kNative, "::workCleanupLoop", "", kUnknown, 53},
    {kNative, "::runHookLoop", "", kUnknown, 53},
    {kNative, "::heartbeatMonitor", "", kUnknown, 53},
    {kNative, "::Watchdog::", "", kUnknown, 53},
    {kNative, "::WatchdogXCCL::", "", kUnknown, 53},
    {kNative, "::HeartbeatMonitor::", "", kUnknown, 53},
    {kNative, "::HeartbeatMonitorXCCL::", "", kUnknown, 53},
    {kNative, "c10d::Reducer::Reducer", "", kDdpConstructor, 92},
    {kNative, "c10d::Reducer", "", kDdpBackward, 49},
    {kNative, "ncclGroupEnd", "", kCollective, 46},
    {kNative, "ncclCommInitRank", "", kRendezvous, 52},
    {kNative, "TCPStore::", "", kStore, 45},
    {kNative, "c10d::FileStore::", "", kStore, 45},
    {kNative, "c10d::PrefixStore::", "", kStore, 44},
    {kPython, "", "torch/distributed/checkpoint/", kSaving, 40},
    {kPython, "save", "torch/serialization.py", kSaving, 42},
    {kPython, "_save", "torch/serialization.py", kSaving, 42},
    {kPython, "load", "torch/serialization.py", kSaving, 42},
    {kPython, "save_file", "safetensors", kSaving, 42},
    // Waiting for processes, threads, queues.
    {kPython, "join", "multiprocessing/process.py", kJoin, 32},
    {kPython, "join", "torch/multiprocessing/spawn.py", kJoin, 33},
    {kPython, "join", "multiprocessing/pool.py", kJoin, 33},
    {kPython, "join", "threading.py", kJoin, 32},
    {kPython, "_wait_for_tstate_lock", "threading.py", kJoin, 31},
    {kPython, "wait", "subprocess.py", kJoin, 32},
    {kPython, "communicate", "subprocess.py", kJoin, 32},
    {kNativeExact, "wait4", "", kJoin, 25},
    {kNativeExact, "__wait4", "", kJoin, 25},
    {kNativeExact, "waitpid", "", kJoin, 25},
    {kPython, "get", "multiprocessing/queues.py", kQueue, 30},
    {kPython, "put", "multiprocessing/queues.py", kQueue, 30},
    {kPython, "get", "multiprocessing/pool.py", kQueue, 30},
    {kPython, "wait", "multiprocessing/pool.py", kQueue, 30},
    {kPython, "", "multiprocessing/connection.py", kQueue, 29},
    {kPython, "dequeue", "vllm/distributed/device_communicators/shm_broadcast.py", kQueue, 30},
    {kPython, "acquire_read", "vllm/distributed/device_communicators/shm_broadcast.py", kQueue, 30},
    {kPython, "recv_requests", "sglang/srt/managers/scheduler.py", kQueue, 28},
    {kPython, "main_loop", "ray/_private/worker.py", kQueue, 10},  // has no task
    {kPython, "get", "queue.py", kQueue, 30},
    {kPython, "put", "queue.py", kQueue, 30},
    {kPython, "join", "queue.py", kQueue, 30},
    {kPython, "result", "concurrent/futures/_base.py", kQueue, 30},
    {kPython, "_run_once", "asyncio/base_events.py", kEventLoop, 14},
    {kPython, "run_until_complete", "uvloop/loop.pyx", kEventLoop, 14},
    // Locks.
    {kPython, "acquire", "threading.py", kLock, 20},
    {kPython, "wait", "threading.py", kLock, 20},
    {kPython, "__enter__", "threading.py", kLock, 20},
    {kPython, "", "multiprocessing/synchronize.py", kLock, 20},
    {kPython, "acquire", "logging/__init__.py", kLock, 22},
    {kPython, "acquire", "filelock/", kLock, 24},
    {kNative, "lll_lock_wait", "", kLock, 20},
    {kNativeExact, "pthread_mutex_lock", "", kLock, 20},
    {kNativeExact, "___pthread_mutex_lock", "", kLock, 20},
    {kNativeExact, "take_gil", "", kLock, 20},
    {kNative, "lock_PyThread_acquire_lock", "", kLock, 18},
    {kNative, "rlock_acquire", "", kLock, 18},
    {kNative, "acquire_timed", "", kLock, 18},
    // Its own time and its own input/output.
    {kNative, "nanosleep", "", kSleeping, 16},
    {kNativeExact, "time_sleep", "", kSleeping, 16},
    {kNativeExact, "pysleep", "", kSleeping, 16},
    {kPython, "", "socket.py", kIo, 12},
    {kPython, "", "ssl.py", kIo, 12},
    {kNativeExact, "read", "", kIo, 8},
    {kNativeExact, "__read", "", kIo, 8},
    {kNativeExact, "__GI___libc_read", "", kIo, 8},
    {kNativeExact, "pread64", "", kIo, 8},
    {kNativeExact, "write", "", kIo, 8},
    {kNativeExact, "__write", "", kIo, 8},
    {kNativeExact, "open", "", kIo, 8},
    {kNativeExact, "open64", "", kIo, 8},
    {kNativeExact, "openat", "", kIo, 8},
    {kNativeExact, "fsync", "", kIo, 8},
    {kNativeExact, "flock", "", kLock, 9},
    {kNativeExact, "recv", "", kIo, 8},
    {kNativeExact, "__libc_recv", "", kIo, 8},
    {kNativeExact, "accept", "", kIo, 8},
    {kNativeExact, "connect", "", kIo, 8},
};

// Functions of torch/distributed/distributed_c10d.py; a call of one may be made inside another (an
// object list is broadcast as tensors).
constexpr Operation kOperations[] = {
    {"all_reduce", "all_reduce", kCollective},
    {"all_reduce_coalesced", "all_reduce", kCollective},
    {"broadcast", "broadcast", kCollective},
    {"reduce", "reduce", kCollective},
    {"all_gather", "all_gather", kCollective},
    {"all_gather_into_tensor", "all_gather_into_tensor", kCollective},
    {"_all_gather_base", "all_gather_into_tensor", kCollective},
    {"all_gather_coalesced", "all_gather", kCollective},
    {"gather", "gather", kCollective},
    {"scatter", "scatter", kCollective},
    {"reduce_scatter", "reduce_scatter", kCollective},
    {"reduce_scatter_tensor", "reduce_scatter_tensor", kCollective},
    {"_reduce_scatter_base", "reduce_scatter_tensor", kCollective},
    {"all_to_all", "all_to_all", kCollective},
    {"all_to_all_single", "all_to_all_single", kCollective},
    {"barrier", "barrier", kCollective},
    {"monitored_barrier", "monitored_barrier", kCollective},
    {"broadcast_object_list", "broadcast_object_list", kCollective},
    {"all_gather_object", "all_gather_object", kCollective},
    {"gather_object", "gather_object", kCollective},
    {"scatter_object_list", "scatter_object_list", kCollective},
    {"send", "send", kPointToPoint},
    {"recv", "recv", kPointToPoint},
    {"isend", "send", kPointToPoint},
    {"irecv", "recv", kPointToPoint},
    {"send_object_list", "send", kPointToPoint},
    {"recv_object_list", "recv", kPointToPoint},
    {"batch_isend_irecv", "batch_isend_irecv", kPointToPoint},
    // Made by all ranks of a communicator or group; wrappers call them (framework_calls.cc).
    {"ncclCommInitRank", "ncclCommInitRank", kCollective, true},
    {"ncclCommSplit", "ncclCommSplit", kCollective, true},
    {"ncclCommWindowRegister", "ncclCommWindowRegister", kCollective, true},
    {"symmetric-memory rendezvous", "symmetric-memory rendezvous", kCollective, true},
};

}  // namespace

std::span<const ActivityRule> activity_rules() {
  return kRules;
}

constexpr Operation on_device(std::string_view function, std::string_view operation) {
  return {.function = function, .operation = operation, .unrecorded = true};
}

/// Operations of torch 2.4 to 2.14 on symmetric memory that have a barrier between the ranks.
constexpr Operation kDeviceOperations[] = {
    on_device("one_shot_all_reduce", "one_shot_all_reduce"),
    on_device("one_shot_all_reduce_out", "one_shot_all_reduce"),
    on_device("one_shot_all_reduce_copy", "one_shot_all_reduce"),
    on_device("one_shot_all_reduce_copy_out", "one_shot_all_reduce"),
    on_device("two_shot_all_reduce_", "two_shot_all_reduce"),
    on_device("two_shot_all_reduce_out", "two_shot_all_reduce"),
    on_device("multimem_all_reduce_", "multimem_all_reduce"),
    on_device("multimem_one_shot_all_reduce", "multimem_one_shot_all_reduce"),
    on_device("multimem_one_shot_all_reduce_out", "multimem_one_shot_all_reduce"),
    on_device("multimem_all_gather_out", "multimem_all_gather"),
    on_device("reduce_scatter_out", "reduce_scatter"),
    on_device("fused_all_gather_matmul", "fused_all_gather_matmul"),
    on_device("fused_all_gather_scaled_matmul", "fused_all_gather_scaled_matmul"),
    on_device("fused_matmul_reduce_scatter", "fused_matmul_reduce_scatter"),
    on_device("fused_scaled_matmul_reduce_scatter", "fused_scaled_matmul_reduce_scatter"),
};

const Operation* operation_of(std::string_view function) {
  const std::string_view name = plain_name(function);
  const auto* const found =
      std::find_if(std::begin(kOperations), std::end(kOperations),
                   [name](const Operation& one) { return one.function == name; });
  return found == std::end(kOperations) ? nullptr : found;
}

const Operation* device_operation_of(std::string_view full_name) {
  constexpr std::string_view kSymmetricMemory = "torch.ops.symm_mem.";
  if (!full_name.starts_with(kSymmetricMemory)) {
    return nullptr;
  }
  full_name.remove_prefix(kSymmetricMemory.size());
  const auto* const found =
      std::find_if(std::begin(kDeviceOperations), std::end(kDeviceOperations),
                   [full_name](const Operation& one) { return one.function == full_name; });
  return found == std::end(kDeviceOperations) ? nullptr : found;
}

}  // namespace ddpdoctor::graph
