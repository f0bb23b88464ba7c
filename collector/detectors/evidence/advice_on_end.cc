// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/advice_on_end.h"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>

#include "collector/detectors/evidence/ended_outside.h"
#include "collector/detectors/evidence/rendezvous_failures.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

/// The highest usage of /dev/shm as a share of 1; nothing if it was not measured.
std::optional<double> shm_share(const model::JobModel& job) {
  std::optional<double> most;
  for (const model::Fact* usage : model::facts(job, "shm-usage")) {
    const auto total = usage->number("bytes_total");
    const auto used = usage->number("bytes_used");
    if (total && used && *total > 0) {
      most = std::max(most.value_or(0), *used / *total);
    }
  }
  return most;
}

std::string fix_for_bus_error(const model::JobModel& job) {
  constexpr double kRoom = 0.9;
  const auto share = shm_share(job);
  if (!share || *share > kRoom) {
    return "SIGBUS is a full /dev/shm more often than not: raise it (--shm-size, --ipc=host) or "
           "lower num_workers.";
  }
  return fmt::format(
      "Check which program truncates or rewrites a file that this rank maps (np.memmap, "
      "safetensors), or whether its disk is full: /dev/shm was {:.0f} % full at most.",
      *share * 100);
}

}  // namespace

std::string_view advice_by_text(std::string_view exception) {
  const auto says = [exception](std::string_view words) {
    return exception.find(words) != exception.npos;
  };
  if (lacks_environment(exception)) {
    return "Start the program with torchrun, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT "
           "for each process.";
  }
  if (says("CUDA out of memory") || says("HIP out of memory") || says("torch.OutOfMemoryError") ||
      says("torch.cuda.OutOfMemoryError")) {
    return "Lower the memory of this GPU: a smaller batch or sequence, gradient checkpointing, or "
           "more shards. Run `nvidia-smi`: an earlier run may still hold memory there.";
  }
  if (says("No space left on device") || says("Disk quota exceeded")) {
    return "Free space or inodes on that file system (`df -h`, `df -i`), or write to a different "
           "one: TMPDIR for temporary files.";
  }
  if (says("device-side assert") || says("an illegal memory access")) {
    return "Run again with CUDA_LAUNCH_BLOCKING=1: the traceback then shows the call that failed. "
           "Check indices (labels, token ids) against the sizes they index.";
  }
  return {};
}

std::string advice_on_end(const model::JobModel& job, const std::optional<model::Exit>& exit) {
  const int signal = exit ? exit->signal.value_or(0) : 0;
  const auto limit = signal == 9 ? told_memory_limit(job) : std::nullopt;
  if (limit) {
    return limit->fix;
  }
  if (signal == 9) {
    return "Run `dmesg` and check the memory limit of the container: the out-of-memory killer or a "
           "person sent SIGKILL. Lower the memory of this rank. Start ranks with torchrun, which "
           "ends the others when one dies.";
  }
  if (signal == SIGBUS) {
    return fix_for_bus_error(job);
  }
  if (signal == 11 || signal == 6 || signal == 4 || signal == 8) {
    return "Find the native crash: run this rank with python -X faulthandler, or open its core "
           "file.";
  }
  return "Check the log of this rank and `dmesg` for why it exited; start ranks with torchrun, "
         "which ends the others when one dies.";
}

}  // namespace ddpdoctor::detectors
