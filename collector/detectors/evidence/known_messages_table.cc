// SPDX-License-Identifier: Apache-2.0
// The known messages. Many programs write `common` messages: these count only if the code that
// raised them, or a name on the line, belongs to the meant library.
#include "collector/detectors/evidence/known_exceptions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kSpawn =
    "Start children with spawn or forkserver, and touch CUDA only after that (no torch.cuda call, "
    "no .cuda() tensor at import).";
constexpr std::string_view kShm =
    "Give the container more shared memory (--shm-size=8g or --ipc=host), or lower num_workers and "
    "prefetch_factor.";
constexpr std::string_view kFiles =
    "Raise the limit (ulimit -n 65536), use "
    "torch.multiprocessing.set_sharing_strategy(\"file_system\"), or keep fewer batches alive.";
constexpr std::string_view kPickle =
    "Move the function or class to the top level of a module: what a spawned process gets must be "
    "importable by name.";
constexpr std::string_view kGpuFix =
    "Drain this node and run `dmesg | grep Xid` and `nvidia-smi -q` there; the hardware or its "
    "driver failed, not the program.";
constexpr std::string_view kMaster =
    "Free the port or choose a different one (--master-port, --rdzv-endpoint), and check "
    "MASTER_ADDR "
    "on every node.";
constexpr std::string_view kDevice =
    "Call torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before any CUDA or collective "
    "call, and load checkpoints with map_location.";

constexpr std::string_view kInterface =
    "Set NCCL_SOCKET_IFNAME on every node to an interface of `ip -brief address` there, or unset "
    "it.";
constexpr std::string_view kConnect =
    "Set NCCL_SOCKET_IFNAME to an interface that reaches the other nodes, and open NCCL's ports in "
    "the firewall.";

constexpr std::string_view kVersions =
    "Install the same version on every node and in every container, and compare LD_LIBRARY_PATH.";
constexpr std::string_view kDaemons =
    "Log in from the first node to each other node with ssh, compare PATH and LD_LIBRARY_PATH "
    "there, and pass oob_tcp_if_include with an interface that all nodes reach.";

constexpr std::string_view kStart =
    "Start every rank, or set WORLD_SIZE (--nproc-per-node, --nnodes) to the number of processes "
    "you start.";

constexpr std::string_view kMemory =
    "Lower the memory of this process (batch, workers, prefetch, offloading), or give the node or "
    "its container more.";

// The author: part of the path of the code that raises, or of the name before the message.
constexpr std::string_view kTorch = "torch";
constexpr std::string_view kPickling = "multiprocess";  // multiprocessing, and its variant for dill

// NCCL before 2.4 put only the file name before its messages.
constexpr std::string_view kOldSocket = "include/socket.h:";

constexpr KnownException no_interface(std::string_view pattern, std::string_view also = {}) {
  return {.kind = "nccl-unreachable",
          .pattern = pattern,
          .also = also,
          .meaning = "found no network interface for NCCL",
          .fix = kInterface};
}

constexpr std::string_view kSizes =
    "Compare the call and the sizes that each rank passes (TORCH_DISTRIBUTED_DEBUG=DETAIL), and "
    "NCCL_PROTO and NCCL_ALGO on all nodes.";
constexpr std::string_view kLocked =
    "Raise the limit of locked memory for the job (`ulimit -l unlimited`, memlock in "
    "limits.conf or in the container).";
constexpr std::string_view kGid =
    "Set NCCL_IB_GID_INDEX and NCCL_IB_HCA so that the ports reach each other (`show_gids`, "
    "`ib_write_bw`), or NCCL_IB_DISABLE=1 to use sockets.";

/// NCCL could not make its queues for InfiniBand or RoCE.
constexpr KnownException no_verbs(std::string_view call) {
  return {.kind = "nccl-unreachable",
          .pattern = call,
          .also = "Cannot allocate memory",
          .meaning = "could not register memory for InfiniBand: locked memory is limited",
          .fix = kLocked};
}

constexpr KnownException cannot_connect(std::string_view pattern, std::string_view also = {}) {
  return {.kind = "nccl-unreachable",
          .pattern = pattern,
          .also = also,
          .meaning = "could not connect to a different rank through NCCL's sockets",
          .fix = kConnect};
}

/// NCCL retries: only a line without any following line is a failure.
constexpr KnownException retries_connection(std::string_view pattern, std::string_view also) {
  KnownException out = cannot_connect(pattern, also);
  out.passes = true;
  return out;
}

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
constexpr KnownException lost_worker(std::string_view pattern, std::string_view meaning) {
  return {.kind = "dead-rank",
          .pattern = pattern,
          .meaning = meaning,
          .fix =
              "Run `dmesg | grep -i kill` on the node of that worker. Read its log, too: "
              "worker-*-PID.err "
              "in /tmp/ray/session_latest/logs, or the output of `dask worker`.",
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

constexpr KnownException kTable[] = {
    {.kind = "fork-after-cuda",
     .pattern = "Cannot re-initialize CUDA in forked subprocess",
     .said_by = kTorch,
     .meaning = "used CUDA in a child that was forked after CUDA had started",
     .fix = kSpawn},
    {.kind = "dataloader-worker-killed",
     .pattern = "DataLoader worker (pid",
     .also = "killed by signal",
     .said_by = kTorch,
     .meaning = "lost a DataLoader worker to a signal",
     .fix = "Check the signal: Killed means memory, Bus error means /dev/shm, Segmentation fault "
            "means native code of the dataset."},
    {.kind = "dataloader-worker-killed",
     .pattern = "DataLoader worker (pid",
     .also = "exited unexpectedly",
     .said_by = kTorch,
     .meaning = "lost a DataLoader worker",
     .fix = "Run once with num_workers=0 to see the error in the main process; watch its memory."},
    {.kind = "dataloader-worker-stuck",
     .pattern = "DataLoader timed out after ",
     .said_by = kTorch,
     .meaning = "got no batch from its DataLoader workers within the timeout of the DataLoader",
     .fix = "Run `py-spy dump --pid PID` for a worker while it hangs; if the stack shows a lock, "
            "start workers with multiprocessing_context=\"forkserver\" (fork copies held locks).",
     .of_another = true},
    {.kind = "dataloader-worker-raised",
     .pattern = "in DataLoader worker process",
     .also = "Caught",
     .said_by = kTorch,
     .meaning = "got an exception from a DataLoader worker",
     .fix = "Fix the line of the dataset that raised; the other ranks only wait for this batch.",
     .place_below = true},
    {.kind = "shm-exhausted",
     .pattern = "insufficient shared memory (shm)",
     .meaning = "ran out of shared memory",
     .fix = kShm},
    {.kind = "shm-exhausted",
     .pattern = "No space left on device",
     .also = "/dev/shm",
     .meaning = "ran out of shared memory",
     .fix = kShm},
    {.kind = "shm-exhausted",
     .pattern = "unable to write to file </torch_",
     .meaning = "ran out of shared memory",
     .fix = kShm},
    {.kind = "shm-exhausted",
     .pattern = "allocate shared memory(shm)",
     .also = "No space left on device",
     .said_by = kTorch,
     .meaning = "ran out of shared memory",
     .fix = kShm},
    {.kind = "shm-exhausted",
     .pattern = "Error while creating shared memory segment",
     .meaning = "could not get shared memory for NCCL",
     .fix = kShm,
     .because = "No space left on device"},
    {.kind = "shm-exhausted",
     .pattern = "failed to extend /dev/shm/nccl-",
     .meaning = "could not get shared memory for NCCL",
     .fix = kShm,
     .because = "No space left on device"},
    {.kind = "shm-exhausted",
     .pattern = "posix_fallocate failed",
     .also = "NCCL",
     .meaning = "could not get shared memory",
     .fix = kShm},
    {.kind = "shm-exhausted",
     .pattern = "killed by signal: Bus error",
     .also = "out of shared memory",
     .said_by = kTorch,
     .meaning = "lost a DataLoader worker to a bus error: shared memory is full",
     .fix = kShm},
    {.kind = "fd-exhausted",
     .pattern = "Too many open files",
     .meaning = "ran out of file descriptors",
     .fix = kFiles},
    {.kind = "fd-exhausted",
     .pattern = "received 0 items of ancdata",
     .meaning = "ran out of file descriptors while a tensor was passed between processes",
     .fix = kFiles},
    {.kind = "spawn-unpicklable",
     .pattern = "Can't pickle local object",
     .said_by = kPickling,
     .common = true,
     .meaning = "passed a local function to a spawned process",
     .fix = kPickle},
    {.kind = "spawn-unpicklable",
     .pattern = "Can't get local object",
     .said_by = kPickling,
     .common = true,
     .meaning = "passed a local function to a spawned process",
     .fix = kPickle},
    {.kind = "spawn-unpicklable",
     .pattern = "Can't pickle <function <lambda>",
     .said_by = kPickling,
     .common = true,
     .meaning = "passed a lambda to a spawned process",
     .fix = kPickle},
    {.kind = "spawn-unpicklable",
     .pattern = "TypeError: cannot pickle",
     .said_by = kPickling,
     .common = true,
     .meaning = "passed an object that cannot be pickled to a spawned process",
     .fix = kPickle},
    {.kind = "spawn-unpicklable",
     .pattern = "Can't get attribute",
     .said_by = kPickling,
     .common = true,
     .meaning = "spawned a process that cannot import the function to run",
     .fix = kPickle},
    {.kind = "marked-ready-twice",
     .pattern = "Expected to mark a variable ready only once",
     .said_by = kTorch,
     .meaning = "used a parameter twice in one backward of DistributedDataParallel",
     .fix = "Use checkpoint(..., use_reentrant=False), call backward once per forward, or "
            "DistributedDataParallel(..., static_graph=True)."},
    {.kind = "buffers-inplace",
     .pattern = "modified by an inplace operation",
     .said_by = kTorch,
     .meaning = "changed a tensor in place before backward had used it",
     .fix = "Run one forward per backward, or pass broadcast_buffers=False to "
            "DistributedDataParallel: each forward copies the buffers in place."},
    {.kind = "state-dict-prefix",
     .pattern = "Unexpected key(s) in state_dict",
     .also = "\"module.",
     .said_by = kTorch,
     .meaning = "loaded a checkpoint of the wrapped model into the unwrapped one",
     .fix = "Save model.module.state_dict(), or remove the prefix: {k.removeprefix(\"module.\"): v "
            "for k, v in state.items()}."},
    {.kind = "state-dict-prefix",
     .pattern = "Missing key(s) in state_dict",
     .also = "\"module.",
     .said_by = kTorch,
     .meaning = "loaded a checkpoint of the unwrapped model into the wrapped one",
     .fix = "Load the checkpoint into model.module."},
    {.kind = "batchnorm-single-sample",
     .pattern = "Expected more than 1 value per channel when training",
     .said_by = kTorch,
     .meaning = "passed a batch of one sample to BatchNorm",
     .fix = "Use drop_last=True, a larger batch on every rank, or SyncBatchNorm."},
    {.kind = "wrong-device",
     .pattern = "devices used by this process are currently unknown",
     .said_by = kTorch,
     .meaning = "did not choose its GPU: torch guessed which one its barrier uses",
     .fix = kDevice,
     .warns = true},
    {.kind = "wrong-device",
     .pattern = "Duplicate GPU detected",
     .said_by = kTorch,
     .meaning = "uses the GPU of a different rank",
     .fix = kDevice},
    {.kind = "gpu-fault",
     .pattern = "uncorrectable ECC error encountered",  // other programs report memory errors, too
     .meaning = "had a memory fault of its GPU",
     .fix = kGpuFix},
    {.kind = "gpu-fault",
     .pattern = "uncorrectable NVLink error",
     .meaning = "had a fault of an NVLink of its GPU",
     .fix = kGpuFix},
    {.kind = "master-unreachable",
     .pattern = "Address already in use",
     .said_by = kTorch,
     .common = true,
     .meaning = "could not bind the port of the rendezvous: it is in use",
     .fix = kMaster},
    {.kind = "master-unreachable",
     .pattern = "EADDRINUSE",
     .said_by = kTorch,
     .common = true,
     .meaning = "could not bind the port of the rendezvous: it is in use",
     .fix = kMaster},
    {.kind = "master-unreachable",
     .pattern = "client socket has failed to connect",
     .said_by = kTorch,
     .meaning = "cannot reach the rendezvous",
     .fix = kMaster,
     .passes = true},
    {.kind = "master-unreachable",
     .pattern = "client socket has timed out",
     .said_by = kTorch,
     .meaning = "cannot reach the rendezvous",
     .fix = kMaster},
    {.kind = "master-unreachable",
     .pattern = "RendezvousConnectionError",
     .said_by = kTorch,
     .meaning = "cannot reach the rendezvous",
     .fix = kMaster},
    {.kind = "rendezvous-incomplete",
     .pattern = "rendezvous.api.RendezvousTimeoutError",
     .said_by = kTorch,
     .meaning = "waited for nodes that never joined",
     .fix = kStart},
    {.kind = "rendezvous-incomplete",
     .pattern = "waiting for clients",
     .also = "clients joined",
     .said_by = kTorch,
     .meaning = "waited for ranks that never joined",
     .fix = kStart},
    {.kind = "rendezvous-incomplete",
     .pattern = "Timed out initializing process group in store based barrier",
     .said_by = kTorch,
     .meaning = "waited for ranks that never joined",
     .fix = kStart},
    {.kind = "rendezvous-incomplete",
     .pattern = "store based barrier",
     .also = "num_workers_joined=",
     .said_by = kTorch,
     .meaning = "waited for ranks that never joined",
     .fix = kStart},
    {.kind = "rendezvous-incomplete",
     .pattern = "core engine proc(s) to start",
     .meaning = "waits for engine processes of vLLM that have not started",
     .fix =
         "Start the engines of the other nodes (--data-parallel-start-rank, --headless) with the "
         "same --data-parallel-address, and read their output.",
     .passes = true},
    no_resources("No available node types can fulfill resource request"),
    no_resources("cannot be scheduled right now"),
    no_resources("Placement group creation timed out"),
    no_resources("Waiting for creating a placement group of specs for "),
    {.kind = "nccl-unreachable",
     .pattern = "NCCL WARN Call to ibv_modify_qp failed",
     .meaning = "could not connect to a different rank over InfiniBand or RoCE",
     .fix = kGid},
    no_verbs("Call to ibv_create_cq failed"),
    no_verbs("Call to ibv_create_qp failed"),
    no_verbs("Call to ibv_reg_mr failed"),
    no_verbs("Call to ibv_reg_mr_iova2 failed"),
    {.kind = "fabric-fault",
     .pattern = "Failed to bind NVLink SHARP (NVLS) Multicast memory",
     .meaning = "could not set up NVLink SHARP (NVLS)",
     .fix = "Set NCCL_NVLS_ENABLE=0, and restart the fabric manager on that node (`systemctl "
            "restart nvidia-fabricmanager`)."},
    {.kind = "fabric-fault",
     .pattern = "MNNVL (cliqueSize ",
     .also = "Check the IMEX",
     .meaning = "could not use NVLink between nodes (MNNVL)",
     .fix = "Set NCCL_MNNVL_ENABLE=0, or start nvidia-imex on every node and give its channel to "
            "the container."},
    {.kind = "fabric-fault",
     .pattern = "P2P is disabled between NVLINK connected GPUs",
     .meaning = "cannot copy directly between GPUs that NVLink connects",
     .fix = "Drain that node and run `nvidia-smi nvlink -s` and `nvidia-smi topo -p2p r`; a link "
            "or the driver failed. NCCL_IGNORE_DISABLED_P2P=1 ignores it."},
    {.kind = "fabric-fault",
     .pattern = "system not yet initialized",
     .meaning = "cannot start CUDA: the fabric manager of the NVSwitches does not run",
     .fix = "Start the fabric manager on that node (`systemctl start nvidia-fabricmanager`); its "
            "version must equal the driver's."},
    {.kind = "fabric-fault",
     .pattern = "Missing \"iommu=pt\" from kernel command line",
     .meaning = "may hang in direct copies between GPUs: the kernel runs without iommu=pt",
     .fix = "Boot that machine with iommu=pt.",
     .warns = true},
    {.kind = "gpu-fault",
     .pattern = "GPU requires reset",
     .meaning = "has a GPU that must be reset",
     .fix = kGpuFix},
    {.kind = "gpu-fault",
     .pattern = "Failed to initialize NVML: Driver/library version mismatch",
     .meaning = "cannot use its GPU: the loaded driver and its library have different versions",
     .fix =
         "Reboot that node, or unload the modules of the old driver (`rmmod nvidia_uvm nvidia`)."},
    {.kind = "environment-differs",
     .pattern = "Mismatched NCCL version detected",
     .meaning = "found different versions of NCCL among the ranks",
     .fix = kVersions},
    {.kind = "environment-differs",
     .pattern = "NCCL version mismatch with remote peer",
     .meaning = "found different versions of NCCL among the ranks",
     .fix = kVersions},
    {.kind = "environment-differs",
     .pattern = "Open MPI detected a mismatch in versions between two processes",
     .meaning = "found different versions of Open MPI on the nodes",
     .fix = kVersions},
    {.kind = "environment-differs",
     .pattern = "Bootstrap Root : mismatch in rank count from procs",
     .meaning = "found ranks that pass different world sizes to NCCL",
     .fix = "Pass the same world size on every rank: compare WORLD_SIZE and the arguments of the "
            "launcher on all nodes."},
    {.kind = "mismatched-shape",
     .pattern = "message truncated : receiving ",
     .meaning = "received a message of a different size than it expects",
     .fix = kSizes},
    {.kind = "mismatched-shape",
     .pattern = "NET/IB : ",
     .also = "collective mismatch error",
     .meaning = "received a message of a different size than it expects",
     .fix = kSizes},
    {.kind = "io-stall",
     .pattern = "nfs: server ",
     .also = " not responding",
     .said_by = "kernel",
     .common = true,
     .meaning = "may wait for a server of NFS that does not answer",
     .fix = "Check that server and the network to it, and the mount on this node (`nfsstat -m`, "
            "`dmesg`)."},
    {.kind = "rendezvous-incomplete",
     .pattern = "There are not enough slots available in the system to satisfy the",
     .meaning = "was not started: mpirun has fewer slots than ranks",
     .fix = "Give the hosts more slots (`--host node1:8`, `slots=8` in the hostfile), or pass "
            "--oversubscribe."},
    {.kind = "master-unreachable",
     .pattern = "RTE was unable to reliably start one or more daemons",
     .meaning = "was not started: mpirun could not start its daemons on all nodes",
     .fix = kDaemons},
    {.kind = "master-unreachable",
     .pattern = "RTE daemon has unexpectedly failed after launch and before",
     .meaning = "was not started: a daemon of mpirun could not connect back",
     .fix = kDaemons},
    {.kind = "master-unreachable",
     .pattern = "is unable to establish a communication connection to the",
     .meaning = "lost mpirun: no route between two of its daemons",
     .fix = kDaemons},
    {.kind = "master-unreachable",
     .pattern = "HYDU_sock_connect",
     .also = "unable to connect from",
     .meaning = "was not started: a proxy of mpiexec could not connect back",
     .fix = kDaemons},
    {.kind = "dead-rank",
     .pattern = "RTE has lost communication with a remote daemon",
     .meaning = "lost its node: mpirun lost the connection to the daemon there",
     .fix = "Check the node named below that message: it was rebooted, lost its network, or its "
            "daemon was killed (`dmesg`)."},
    {.kind = "nccl-unreachable",
     .pattern = "is neither AF_INET(",
     .meaning = "received an invalid address from a different rank: NCCL probably found no "
                "interface there",
     .fix = kInterface},
    {.kind = "nccl-unreachable",
     .pattern = "Unable to find address for: ",
     .meaning = "found no network interface for gloo",
     .fix = "Set GLOO_SOCKET_IFNAME on every node to an interface of `ip -brief address` there, or "
            "unset it."},
    {.kind = "nccl-unreachable",
     .pattern = "Unable to find interface for: ",
     .meaning = "found no network interface for gloo",
     .fix = "Set GLOO_SOCKET_IFNAME on every node to an interface of `ip -brief address` there, or "
            "unset it."},
    no_interface("Bootstrap : no socket interface found"),
    no_interface("NET/Socket : no interface found"),
    no_interface("NET/Socket : No usable listening interface found"),
    no_interface("no device found matching", "NCCL_OOB_NET_IFNAME"),
    no_interface("No interface found in the same subnet as remote address"),
    no_interface(kOldSocket, " WARN Socket creation failed : "),
    no_interface("NCCL WARN Socket creation failed : "),
    no_interface("Net : Socket creation failed : "),
    no_interface("ncclSocketInit: Socket creation failed : "),
    cannot_connect("ocketStartConnect: ", " failed : "),
    cannot_connect("ocketStartConnect", "exceeded "),
    cannot_connect("ocketPollConnect", " failed "),
    cannot_connect("ocketPollConnect", "exceeded "),
    cannot_connect("ocketPollConnect: Connect to ", " returned "),
    cannot_connect("Net : Connect to ", " failed : "),
    cannot_connect("NCCL WARN Connect to ", " failed : "),
    cannot_connect("NCCL WARN Call to connect ", " : "),
    cannot_connect(kOldSocket, " WARN Connect to "),
    cannot_connect(kOldSocket, " WARN Call to connect failed : "),
    retries_connection("ocketPollConnect", "retrying ("),
    retries_connection("ocketStartConnect", "retrying ("),
    retries_connection("NCCL INFO Call to connect returned", ", retrying"),
    retries_connection(kOldSocket, " INFO Call to connect returned"),
    lost_worker("The actor is dead because its worker process has died",
                "waited for an actor of Ray whose process has ended"),
    {.kind = "dead-rank",
     .pattern = "killed due to memory pressure (OOM)",
     .also = "Workers",
     .meaning = "was probably killed: Ray ended a worker because the node ran out of memory",
     .fix = kMemory},
    lost_worker("The actor died unexpectedly before finishing this task",
                "waited for an actor of Ray whose process has ended"),
    lost_worker("The worker died unexpectedly while executing this task",
                "waited for a task of Ray whose worker has ended"),
    lost_worker("ray.exceptions.NodeDiedError", "waited for a task of Ray whose node has failed"),
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
    {.pattern = "An MPI communication peer process has unexpectedly disconnected"},
    {.pattern = "Connection closed by peer"},
    {.pattern = "Connection closed by remote peer"},
    {.pattern = "Socket recv failed while polling for opId"},
    {.pattern = "ncclRemoteError"},
    {.pattern = "Horovod has been shut down"},
    {.pattern = "Unable to unpickle data from other workers"},  // of fairseq
    {.pattern = "EngineDeadError"},
    {.pattern = "Engine core initialization failed. See root cause above"},
    {.pattern = "ray.exceptions.OutOfMemoryError"},
    {.pattern = "ray.exceptions.ActorDiedError"},
    {.pattern = "ray.exceptions.RayActorError"},
    {.pattern = "ray.exceptions.OwnerDiedError"},
    {.pattern = "RPC call to ", .also = " timed out"},
    {.pattern = "Connection reset by peer"},
    {.pattern = "Broken pipe"},
    {.pattern = "Watchdog caught collective operation timeout"},
    {.pattern = "Timed out waiting"},
    {.pattern = "Socket Timeout"},
    {.pattern = "wait timeout after"},
    {.pattern = "ChildFailedError"},
    {.pattern = "ProcessRaisedException"},
    {.pattern = "ProcessExitedException"},
    {.pattern = "SignalException"},
    {.pattern = "RendezvousClosedError"},
    {.pattern = "RendezvousGracefulExitError"},
    {.pattern = "KeyboardInterrupt"},
    {.pattern = "NCCL communicator was aborted"},
    {.pattern = "failed to pass monitoredBarrier"},
    {.pattern = "successfully reached monitoredBarrier"},
    {.pattern = "Detected mismatch between collectives on ranks"},
    {.pattern = "remote process exited or there was a network error"},
    {.pattern = "DeepEP error", .also = "timeout"},
    {.pattern = "NCCL operations have failed or timed out"},
    {.pattern = "failed to recv, got 0 bytes"},
    {.pattern = "Gloo connectFullMesh failed with "},
};

}  // namespace

std::span<const KnownException> known_exceptions() {
  return kTable;
}

}  // namespace ddpdoctor::detectors
