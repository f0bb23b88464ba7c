// SPDX-License-Identifier: Apache-2.0
// The known messages of torch and of Python, and the consequences that many libraries print. Many
// programs write `common` messages: these count only if the code that raised them, or a name on the
// line, belongs to the meant library.
#include <vector>

#include "collector/detectors/evidence/message_tables.h"

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

constexpr std::string_view kMaster =
    "Check on every node that `nc -vz $MASTER_ADDR $MASTER_PORT` (or the host and port of "
    "--rdzv-endpoint) connects: start the node that serves it first, and open the port in the "
    "firewall.";

constexpr std::string_view kPort =
    "Free the port or choose a different one (--master-port, --rdzv-endpoint), and check "
    "MASTER_ADDR "
    "on every node.";

constexpr std::string_view kDevice =
    "Call torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before any CUDA or collective "
    "call, and load checkpoints with map_location.";

constexpr std::string_view kStart =
    "Start every rank, or set WORLD_SIZE (--nproc-per-node, --nnodes) to the number of processes "
    "you start.";

// The author: part of the path of the code that raises, or of the name before the message.
constexpr std::string_view kTorch = "torch";

constexpr std::string_view kPickling = "multiprocess";  // multiprocessing, and its variant for dill

constexpr KnownException kOfTorch[] = {
    {.kind = "fork-after-cuda",
     .pattern = "Cannot re-initialize CUDA in forked subprocess",
     .said_by = kTorch,
     .meaning = "used CUDA in a child that was forked after CUDA had started",
     .fix = kSpawn},
    // numba/np/ufunc/omppool.cpp; it then ends its process with SIGTERM.
    {.kind = "fork-after-openmp",
     .pattern = "fork() called from a process already using GNU OpenMP, this is unsafe",
     .meaning = "was ended by numba: it is a forked child whose parent had used GNU OpenMP before",
     .fix =
         "Start the child with the spawn or forkserver method (multiprocessing_context=\"spawn\" "
         "for a DataLoader). Or set NUMBA_THREADING_LAYER=workqueue."},
    {.kind = "dataloader-worker-raised",
     .pattern = "could not unlink the shared memory file",
     .meaning =
         "could not pass a tensor to another process: its shared memory file had been deleted",
     .fix = "Pass timeout= to the DataLoader: that batch is lost, and its reader waits. Keep other "
            "programs from deleting /dev/shm/torch_* (RemoveIPC of systemd, cleaners, containers "
            "with --ipc=host)."},
    {.kind = "dataloader-worker-killed",
     .pattern = "DataLoader worker (pid",
     .also = "killed by signal",
     .said_by = kTorch,
     .meaning = "lost a DataLoader worker to a signal",
     .fix = "Check the signal: Killed means memory, Bus error means /dev/shm, Segmentation fault "
            "means native code of the dataset.",
     .says = Message::kSignal},
    {.kind = "dataloader-worker-killed",
     .pattern = "DataLoader worker (pid",
     .also = "exited unexpectedly",
     .said_by = kTorch,
     .meaning = "lost a DataLoader worker",
     .fix = "Run once with num_workers=0 to see the error in the main process; watch its memory."},
    {.kind = "dataloader-worker-killed",  // of Paddle
     .pattern = "DataLoader ",
     .also = " workers exit unexpectedly, pids: ",
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
    {.kind = "shm-exhausted",  // a semaphore is a file in /dev/shm
     .pattern = "[Errno 28] No space left on device",
     .said_by = "multiprocessing/synchronize.py",
     .common = true,
     .meaning = "could not make a semaphore: /dev/shm is full",
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
     .pattern = "failed to extend /dev/shm/nccl-",  // the file exists: only room is missing
     .meaning = "could not get shared memory for NCCL",
     .fix = kShm},
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
     .fix = kDevice,
     .says = Message::kOneGpu},
    {.kind = "master-unreachable",
     .pattern = "Address already in use",
     .said_by = kTorch,
     .common = true,
     .meaning = "could not bind the port of the rendezvous: it is in use",
     .fix = kPort,
     .says = Message::kPortInUse},
    {.kind = "master-unreachable",
     .pattern = "EADDRINUSE",
     .said_by = kTorch,
     .common = true,
     .meaning = "could not bind the port of the rendezvous: it is in use",
     .fix = kPort,
     .says = Message::kPortInUse},
    {.kind = "master-unreachable",  // tried again, with addresses of IPv4
     .pattern = "network addresses of (",
     .also = " cannot be retrieved (gai error: ",
     .said_by = kTorch,
     .meaning = "cannot reach the rendezvous",
     .fix = kMaster,
     .says = Message::kNoAddress,
     .passes = true},
    {.kind = "master-unreachable",
     .pattern = "client socket has failed to connect",
     .said_by = kTorch,
     .meaning = "cannot reach the rendezvous",
     .fix = kMaster,
     .says = Message::kCannotReach,
     .passes = true},
    {.kind = "master-unreachable",
     .pattern = "client socket has timed out",
     .said_by = kTorch,
     .meaning = "cannot reach the rendezvous",
     .fix = kMaster,
     .says = Message::kCannotReach},
    {.kind = "master-unreachable",
     .pattern = "RendezvousConnectionError",
     .said_by = kTorch,
     .meaning = "cannot reach the rendezvous",
     .fix = kMaster,
     .says = Message::kCannotReach},
    {.kind = "rendezvous-incomplete",
     .pattern = "rendezvous.api.RendezvousTimeoutError",
     .said_by = kTorch,
     .meaning = "waited for nodes that never joined",
     .fix = kStart,
     .of_another = true},
    {.kind = "rendezvous-incomplete",
     .pattern = "waiting for clients",
     .also = "clients joined",
     .said_by = kTorch,
     .meaning = "waited for ranks that never joined",
     .fix = kStart,
     .of_another = true},
    {.kind = "rendezvous-incomplete",
     .pattern = "Timed out initializing process group in store based barrier",
     .said_by = kTorch,
     .meaning = "waited for ranks that never joined",
     .fix = kStart,
     .of_another = true},
    {.kind = "rendezvous-incomplete",
     .pattern = "store based barrier",
     .also = "num_workers_joined=",
     .said_by = kTorch,
     .meaning = "waited for ranks that never joined",
     .fix = kStart},
};

/// Of a rank because another failed.
constexpr KnownException kConsequences[] = {
    {.pattern = "An MPI communication peer process has unexpectedly disconnected"},
    {.pattern = "Barrier timed out. "},  // of the coordination service of JAX
    {.pattern = "Connection closed by peer", .says = Message::kLostConnection},
    {.pattern = "Connection closed by remote peer", .says = Message::kLostConnection},
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
    {.pattern = "Connection reset by peer", .says = Message::kLostConnection},
    {.pattern = "Broken pipe", .says = Message::kLostConnection},
    {.pattern = "Watchdog caught collective operation timeout"},
    {.pattern = "timed out in blocking wait"},  // of a Work, with NCCL_BLOCKING_WAIT
    {.pattern = "Timed out waiting", .says = Message::kTimedOut},
    {.pattern = "Socket Timeout", .says = Message::kTimedOut},
    {.pattern = "wait timeout after", .says = Message::kTimedOut},
    {.pattern = "Wait timeout", .says = Message::kTimedOut},  // of torch's stores
    {.pattern = "ChildFailedError", .says = Message::kOfLauncher},
    {.pattern = "ProcessRaisedException", .says = Message::kOfLauncher},
    {.pattern = "ProcessExitedException", .says = Message::kOfLauncher},
    {.pattern = "SignalException", .says = Message::kOfLauncher},
    {.pattern = "RendezvousClosedError"},
    {.pattern = "RendezvousGracefulExitError"},
    {.pattern = "KeyboardInterrupt"},
    {.pattern = "NCCL communicator was aborted"},
    {.pattern = "failed to pass monitoredBarrier"},
    {.pattern = "successfully reached monitoredBarrier"},
    {.pattern = "RuntimeError: cancelled"},  // vLLM's readers of messages, when their engine ends
    {.pattern = "Detected mismatch between collectives on ranks"},
    {.pattern = "remote process exited or there was a network error",
     .says = Message::kLostConnection},
    {.pattern = "DeepEP error", .also = "timeout"},
    {.pattern = "NCCL operations have failed or timed out"},
    {.pattern = "failed to recv, got 0 bytes"},
    {.pattern = "Gloo connectFullMesh failed with "},
};

}  // namespace

std::span<const KnownException> known_exceptions() {
  static const std::vector<KnownException> kAll = [] {
    std::vector<KnownException> out(std::begin(kOfTorch), std::end(kOfTorch));
    for (const auto table : {messages_of_transports(), messages_of_workers(),
                             std::span<const KnownException>(kConsequences)}) {
      out.insert(out.end(), table.begin(), table.end());
    }
    return out;
  }();
  return kAll;
}

}  // namespace ddpdoctor::detectors
