// SPDX-License-Identifier: Apache-2.0
// The known messages of those that start processes: Ray, dask, vLLM, DeepSpeed, process pools.
#include "collector/detectors/evidence/message_tables.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kMemory =
    "Lower the memory of this process (batch, workers, prefetch, offloading), or give the node or "
    "its container more.";

/// Of the launcher's line that tells how a process ended and which command it was. Where the rank
/// of that process is sure, imports/logs has read it.
constexpr KnownException deepspeed_saw(std::string_view exits, std::string_view meaning) {
  return {.kind = "dead-rank",
          .pattern = exits,
          .also = ":sigkill_handler]",
          .meaning = meaning,
          .fix = kMemory};
}

/// Of Ray and dask: a task was awaited whose process has ended.
constexpr KnownException lost_worker(std::string_view pattern, std::string_view meaning,
                                     Message says = Message::kOther) {
  return {.kind = "dead-rank",
          .pattern = pattern,
          .meaning = meaning,
          .fix =
              "Run `dmesg | grep -i kill` on the node of that worker. Read its log, too: "
              "worker-*-PID.err "
              "in /tmp/ray/session_latest/logs, or the output of `dask worker`.",
          .says = says,
          .of_another = true};
}

/// Of Ray: a task, an actor or a placement group waits until nodes have the resources it asks for.
constexpr KnownException no_resources(std::string_view pattern) {
  return {.kind = "rendezvous-incomplete",
          .pattern = pattern,
          .meaning = "waits for GPUs or CPUs that no node of the Ray cluster has free",
          .fix =
              "Run `ray status`: start the missing nodes, end what holds the resources, or ask for "
              "fewer (num_workers, tensor_parallel_size, placement group).",
          .of_another = true,
          .transient = true};
}

constexpr KnownException lost_pool_worker(std::string_view pattern) {
  return {.kind = "pool-worker-lost",
          .pattern = pattern,
          .meaning = "lost a worker of its process pool",
          .fix =
              "Run `dmesg | grep -i kill` on that node: memory ends most workers. Otherwise run "
              "the task in the main process with `python -X faulthandler`.",
          .of_another = true};
}

/// Of vLLM's executor: "Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
/// before V1 "Worker VllmWorkerProcess pid 4127 died, exit code: -9".
constexpr KnownException lost_vllm_worker(std::string_view pattern) {
  return {.kind = "dead-rank",
          .pattern = pattern,
          .also = "Worker ",
          .meaning = "lost a worker of vLLM, whose process ended without a message",
          .fix =
              "Run `dmesg | grep -i -e kill -e segfault -e Xid` on the node of that worker; a "
              "signal or a GPU fault ends a process without a traceback.",
          .of_another = true};
}

constexpr KnownException kOfWorkers[] = {
    {.kind = "rendezvous-incomplete",
     .pattern = "core engine proc(s) to connect",  // "to start": they are connected
     .unless = " 0 remote core",                   // those of this node are only slow
     .meaning = "waits for engine processes of vLLM on other nodes that have not connected",
     .fix =
         "Start the engines of the other nodes (--data-parallel-start-rank, --headless) with the "
         "same --data-parallel-address, and read their output.",
     .passes = true},
    no_resources("No available node types can fulfill resource request"),
    no_resources("cannot be scheduled right now"),
    no_resources("Placement group creation timed out"),
    no_resources("Waiting for creating a placement group of specs for "),
    lost_worker("The actor is dead because its worker process has died",
                "waited for an actor of Ray whose process has ended", Message::kLostByRay),
    {.kind = "dead-rank",
     .pattern = "killed due to memory pressure (OOM)",
     .also = "Workers",
     .meaning = "was probably killed: Ray ended a worker because the node ran out of memory",
     .fix = kMemory},
    lost_worker("The actor died unexpectedly before finishing this task",
                "waited for an actor of Ray whose process has ended", Message::kLostByRay),
    lost_worker("The worker died unexpectedly while executing this task",
                "waited for a task of Ray whose worker has ended", Message::kLostByRay),
    lost_worker("A worker died or was killed while executing a task by an unexpected system error",
                "waited for a task of Ray whose worker has ended", Message::kLostByRay),
    lost_worker("ray.exceptions.NodeDiedError", "waited for a task of Ray whose node has failed",
                Message::kLostByRay),
    lost_worker("ray.exceptions.LocalRayletDiedError", "lost Ray's service on its node (raylet)"),
    lost_worker("distributed.scheduler.KilledWorker",
                "waited for a task of dask that ended its workers"),
    lost_vllm_worker("died unexpectedly, shutting down executor"),
    lost_vllm_worker("died, exit code: -9"),
    lost_vllm_worker("died, exit code: -11"),
    lost_pool_worker("was terminated abruptly while the future was running or pending"),
    lost_pool_worker("A child process terminated abruptly, the process pool is not usable"),
    lost_pool_worker("A worker process managed by the executor was unexpectedly terminated"),
    deepspeed_saw("exits with return code = -9", "was killed by SIGKILL"),
    deepspeed_saw("exits with return code = -11", "was killed by SIGSEGV"),
    deepspeed_saw("exits with return code = -7", "was killed by SIGBUS"),
    deepspeed_saw("exits with return code = -6", "was killed by SIGABRT"),
};

}  // namespace

std::span<const KnownException> messages_of_workers() {
  return kOfWorkers;
}

}  // namespace ddpdoctor::detectors
