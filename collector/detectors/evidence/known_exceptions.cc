// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/known_exceptions.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/exceptions_in_hand.h"
#include "collector/detectors/evidence/handlers.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/suspects.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestLine = 240;  // of a message quoted as evidence
constexpr std::string_view kGpuFault = "gpu-fault";

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
constexpr std::string_view kGpu =
    "Drain this node and look at dmesg and nvidia-smi -q; the hardware or its driver failed, not "
    "the program.";
constexpr std::string_view kMaster =
    "Free the port or choose another one (--master-port, --rdzv-endpoint), and check MASTER_ADDR "
    "on every node.";
constexpr std::string_view kDevice =
    "Call torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before any CUDA or collective "
    "call, and load checkpoints with map_location.";

constexpr std::string_view kStart =
    "Start every rank, or set WORLD_SIZE (--nproc-per-node, --nnodes) to the number of processes "
    "you start.";

constexpr KnownException kTable[] = {
    {"fork-after-cuda", "Cannot re-initialize CUDA in forked subprocess", "",
     "used CUDA in a child that was forked after CUDA had started", kSpawn},
    {"dataloader-worker-killed", "DataLoader worker (pid", "killed by signal",
     "lost a DataLoader worker to a signal",
     "Look at the signal: Killed is memory, Bus error is /dev/shm, Segmentation fault is native "
     "code in the dataset."},
    {"dataloader-worker-killed", "DataLoader worker (pid(s)", "exited unexpectedly",
     "lost a DataLoader worker",
     "Run once with num_workers=0 to see the error in the main process; watch its memory."},
    {"dataloader-worker-killed", "DataLoader worker (pid", "exited unexpectedly",
     "lost a DataLoader worker",
     "Run once with num_workers=0 to see the error in the main process; watch its memory."},
    {"dataloader-worker-raised", "in DataLoader worker process", "Caught",
     "got an exception from a DataLoader worker",
     "Fix the line of the dataset that raised; the other ranks only wait for this batch.", true},
    {"shm-exhausted", "insufficient shared memory", "", "ran out of shared memory", kShm},
    {"shm-exhausted", "No space left on device", "/dev/shm", "ran out of shared memory", kShm},
    {"shm-exhausted", "unable to write to file </torch_", "", "ran out of shared memory", kShm},
    {"shm-exhausted", "No space left on device", "shared memory", "ran out of shared memory", kShm},
    {"shm-exhausted", "Error while creating shared memory segment", "",
     "could not get shared memory for NCCL", kShm},
    {"shm-exhausted", "posix_fallocate failed", "", "could not get shared memory", kShm},
    {"shm-exhausted", "killed by signal: Bus error", "out of shared memory",
     "lost a DataLoader worker to a bus error: shared memory is full", kShm},
    {"fd-exhausted", "Too many open files", "", "ran out of file descriptors", kFiles},
    {"fd-exhausted", "received 0 items of ancdata", "",
     "ran out of file descriptors while a tensor was passed between processes", kFiles},
    {"spawn-unpicklable", "Can't pickle local object", "",
     "passes a local function to a spawned process", kPickle},
    {"spawn-unpicklable", "Can't get local object", "",
     "passes a local function to a spawned process", kPickle},
    {"spawn-unpicklable", "Can't pickle <function <lambda>", "",
     "passes a lambda to a spawned process", kPickle},
    {"spawn-unpicklable", "TypeError: cannot pickle", "",
     "passes an object that cannot be pickled to a spawned process", kPickle},
    {"spawn-unpicklable", "Can't get attribute", "",
     "spawned a process that cannot find what it should run", kPickle},
    {"marked-ready-twice", "Expected to mark a variable ready only once", "",
     "used a parameter twice in one backward of DistributedDataParallel",
     "Use checkpoint(..., use_reentrant=False), call backward once per forward, or "
     "DistributedDataParallel(..., static_graph=True)."},
    {"buffers-inplace", "modified by an inplace operation", "",
     "changed a tensor that backward still needs (with DDP: two forwards before backward broadcast "
     "the buffers in place)",
     "Do one forward per backward, or DistributedDataParallel(..., broadcast_buffers=False)."},
    {"state-dict-prefix", "Unexpected key(s) in state_dict", "module.",
     "loads a checkpoint of the wrapped model into the bare one",
     "Save model.module.state_dict(), or strip the prefix: {k.removeprefix(\"module.\"): v for k, "
     "v in state.items()}."},
    {"state-dict-prefix", "Missing key(s) in state_dict", "module.",
     "loads a checkpoint of the bare model into the wrapped one",
     "Load into model.module before or instead of the wrapper."},
    {"batchnorm-single-sample", "Expected more than 1 value per channel when training", "",
     "normalises a batch of one sample",
     "Use drop_last=True, a larger batch on every rank, or SyncBatchNorm."},
    {"wrong-device", "devices used by this process are currently unknown", "",
     "did not choose its GPU: collectives run on GPU 0", kDevice},
    {"wrong-device", "Duplicate GPU detected", "", "shares a GPU with another rank", kDevice},
    {"gpu-fault", "fallen off the bus", "", "lost its GPU", kGpu},
    {"gpu-fault", "uncorrectable ECC error", "", "met a memory fault of its GPU", kGpu},
    {"gpu-fault", "NVRM: Xid", "", "runs on a GPU whose driver reported a fault", kGpu},
    {"master-unreachable", "Address already in use", "", "found the port of the rendezvous taken",
     kMaster},
    {"master-unreachable", "EADDRINUSE", "", "found the port of the rendezvous taken", kMaster},
    {"master-unreachable", "client socket has failed to connect", "", "cannot reach the rendezvous",
     kMaster, false, true},
    {"master-unreachable", "client socket has timed out", "", "cannot reach the rendezvous",
     kMaster},
    {"rendezvous-incomplete", "waiting for clients", "clients joined",
     "waited for ranks that never joined", kStart},
    {"rendezvous-incomplete", "store based barrier",
     "num_workers_joined=", "waited for ranks that never joined", kStart},
    {"", "Connection closed by peer", "", "", ""},
    {"", "Connection reset by peer", "", "", ""},
    {"", "Broken pipe", "", "", ""},
    {"", "Watchdog caught collective operation timeout", "", "", ""},
    {"", "Timed out waiting", "", "", ""},
    {"", "Socket Timeout", "", "", ""},
    {"", "wait timeout after", "", "", ""},
    {"", "ChildFailedError", "", "", ""},
    {"", "ProcessRaisedException", "", "", ""},
    {"", "ProcessExitedException", "", "", ""},
    {"", "SignalException", "", "", ""},
    {"", "KeyboardInterrupt", "", "", ""},
    {"", "NCCL communicator was aborted", "", "", ""},
    {"", "failed to pass monitoredBarrier", "", "", ""},
    {"", "successfully reached monitoredBarrier", "", "", ""},
    {"", "Detected mismatch between collectives on ranks", "", "", ""},
    {"", "remote process exited or there was a network error", "", "", ""},
    {"", "NCCL operations have failed or timed out", "", "", ""},
    {"", "failed to recv, got 0 bytes", "", "", ""},
};

constexpr std::string_view kListsKeys = "key(s) in state_dict";

/// Of the lists of missing and of unexpected keys on one line, only that which the pattern begins.
std::string_view own_list(const KnownException& known, std::string_view line) {
  const std::size_t begin = line.find(known.pattern);
  if (begin == std::string_view::npos || !known.pattern.ends_with(kListsKeys)) {
    return line;
  }
  const std::size_t end = line.find(kListsKeys, begin + known.pattern.size());
  return line.substr(begin, end - begin);
}

bool matches(const KnownException& known, std::string_view line) {
  return line.find(known.pattern) != std::string_view::npos &&
         (known.also.empty() || own_list(known, line).find(known.also) != std::string_view::npos);
}

/// The exception's first line may lack what follows: load_state_dict lists its keys on the next
/// ones, and after those that miss the unexpected ones, which are another list.
bool matches_with_next(const KnownException& known, const LogStream& stream, std::size_t index) {
  if (matches(known, stream[index].text)) {
    return true;
  }
  return !known.also.empty() && known.kind == "state-dict-prefix" && index + 1 < stream.size() &&
         stream[index].text.find(known.pattern) != std::string_view::npos &&
         stream[index + 1].text.find(known.also) != std::string_view::npos &&
         stream[index + 1].text.find(kListsKeys) == std::string_view::npos;
}

/// Something else was written after it: what was tried again went well, or another message tells.
bool passed(const KnownException& known, const LogStream& stream, std::size_t index) {
  return known.passes &&
         std::any_of(stream.begin() + static_cast<std::ptrdiff_t>(index) + 1, stream.end(),
                     [&known](const LogLine& line) {
                       return !base::trim(line.text).empty() && !matches(known, line.text) &&
                              line.text.find("socket.cpp") == std::string_view::npos;
                     });
}

/// The program lived on after its message: it was caught, or was a warning.
bool survived(const model::JobModel& job) {
  if (job.progress == model::Progress::kMoving) {
    return true;
  }
  const model::Observation* now = model::latest(job);
  if (!job.ended || now == nullptr || now->processes.empty()) {
    return false;
  }
  // A program that failed before it had ranks is judged by its own end.
  const auto& all = now->processes;
  const bool any_rank = std::any_of(all.begin(), all.end(), [](const model::Process& process) {
    return process.role == model::Role::kRank;
  });
  return std::all_of(all.begin(), all.end(), [any_rank](const model::Process& process) {
    return (any_rank && process.role != model::Role::kRank) ||
           (process.exit && process.exit->status == 0);
  });
}

/// The rank that printed it calls collectives since, and handles no exception: it was caught, or
/// was never raised. What GPUs and their drivers report is no exception of the rank's.
bool went_on(const graph::Examination& examination, std::optional<model::Rank> rank) {
  const graph::Standing* standing = rank ? examination.standing(*rank) : nullptr;
  return standing != nullptr && standing->process != nullptr && alive(*standing->process) &&
         standing->waits_for_ranks() && standing->activity != graph::Activity::kRendezvous &&
         !handled_by(examination.job, *standing) && !failed_with(examination.job, *standing) &&
         !in_handler(examination.job, standing->callers, {});
}

Suspect suspect_of(const Sighting& sighting, bool harmless) {
  const Confidence sure = sighting.place.known() ? Confidence::kCertain : Confidence::kLikely;
  return {.rank = sighting.rank,
          .place = sighting.place,
          .confidence = harmless ? Confidence::kPossible : sure,
          .note = std::string(sighting.exception->meaning),
          .evidence = "log: " + base::elide(base::printable(sighting.line), kLongestLine)};
}

}  // namespace

std::span<const KnownException> known_exceptions() {
  return kTable;
}

bool outlived(const graph::Examination& examination, std::optional<model::Rank> rank) {
  return survived(examination.job) || went_on(examination, rank);
}

bool is_consequence(std::string_view message) {
  return std::any_of(std::begin(kTable), std::end(kTable), [message](const KnownException& known) {
    return known.kind.empty() && matches(known, message);
  });
}

std::vector<Sighting> sightings(const model::JobModel& job, std::string_view kind) {
  std::vector<Sighting> out;
  if (job.logs.empty()) {
    return out;
  }
  for (const LogStream& stream : log_streams(job)) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      for (const KnownException& known : kTable) {
        if (known.kind == kind && matches_with_next(known, stream, i) &&
            !passed(known, stream, i)) {
          out.push_back({.exception = &known,
                         .rank = stream[i].rank,
                         .place = known.place_below ? user_place_below(stream, i)
                                                    : user_place_above(stream, i),
                         .line = std::string(base::trim(stream[i].text))});
          break;
        }
      }
    }
  }
  return out;
}

namespace {

/// "rank 1 loads", "ranks 0-1 load": what is past is alike for both.
std::string in_number(std::string_view meaning, bool many) {
  const std::size_t end = std::min(meaning.find(' '), meaning.size());
  std::string_view verb = meaning.substr(0, end);
  if (many && verb.ends_with("sses")) {
    verb.remove_suffix(2);
  } else if (many && verb.ends_with('s')) {
    verb.remove_suffix(1);
  }
  return std::string(verb) + std::string(meaning.substr(end));
}

}  // namespace

Findings findings_from_text(const graph::Examination& examination, std::string_view kind) {
  std::map<std::string_view, std::vector<Suspect>> by_fix;
  std::map<std::string_view, const KnownException*> known;
  for (const Sighting& sighting : sightings(examination.job, kind)) {
    const bool harmless =
        kind == kGpuFault ? survived(examination.job) : outlived(examination, sighting.rank);
    by_fix[sighting.exception->fix].push_back(suspect_of(sighting, harmless));
    known.emplace(sighting.exception->fix, sighting.exception);
  }
  Findings findings;
  for (auto& [fix, suspects] : by_fix) {
    for (const auto& there : by_place(std::move(suspects))) {
      Finding finding = accuse(examination, kind, there);
      const std::string whom = finding.culprits.empty() ? std::string("a rank") : who(there);
      finding.summary = fmt::format(
          "{} {}{}{}", whom, in_number(known[fix]->meaning, finding.culprits.size() > 1),
          there.front().place.known() ? " at " + place(there.front().place) : "",
          and_who_waits(finding));
      finding.fix = fix;
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

}  // namespace ddpdoctor::detectors
