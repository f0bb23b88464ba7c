// SPDX-License-Identifier: Apache-2.0
// Compares GPUs and ranks: CUDA_VISIBLE_DEVICES, device nodes, and variables that serialize a job.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/preflight/check.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::preflight::cuda_environment {
namespace {

/// How CUDA reads the list: everything before the first entry that is not a device.
struct Visible {
  int count = 0;
  std::string ignored;    // the first entry that is not a device
  bool repeated = false;  // CUDA then shows no device
};

Visible visible_devices(std::string_view list, int gpus) {
  Visible out;
  std::set<std::string_view> seen;
  for (const std::string_view part : base::split(list, ',')) {
    const std::string_view entry = base::trim(part);
    const auto number = sources::number<int>(entry);
    const bool named = entry.starts_with("GPU-") || entry.starts_with("MIG-");
    if (!named && (!number || *number < 0 || *number >= gpus)) {
      out.ignored = entry;
      break;
    }
    out.repeated = !seen.insert(entry).second || out.repeated;
    ++out.count;
  }
  if (out.repeated) {
    out.count = 0;
  }
  return out;
}

Remark judge_list(const Setting& setting, const std::string& list, int gpus) {
  const Visible visible = visible_devices(list, gpus);
  const std::string said = fmt::format("CUDA_VISIBLE_DEVICES={}", list);
  if (visible.repeated) {
    return {.level = Level::kBreaks,
            .what = said + ": a device is listed twice; CUDA then shows none",
            .fix = "name each device once"};
  }
  const bool few = visible.count < setting.ranks();
  if (!visible.ignored.empty()) {
    return {
        .level = few ? Level::kBreaks : Level::kWarning,
        .what = fmt::format("{}: '{}' is not one of the {} devices here; it and what follows is "
                            "ignored, {} are seen by {} ranks",
                            said, visible.ignored, gpus, visible.count, setting.ranks()),
        .fix = "name devices that exist, or unset it"};
  }
  return {.level = few ? Level::kBreaks : Level::kOk,
          .what = fmt::format("{}: {} devices for {} ranks", said, visible.count, setting.ranks()),
          .fix = few ? "name one device for each rank, or start fewer ranks" : ""};
}

Remarks look(const Setting& setting) {
  const int gpus = setting.gpus();
  Remarks remarks;
  const auto list = setting.environment.find("CUDA_VISIBLE_DEVICES");
  if (gpus == 0) {
    if (setting.plan.ranks_by_gpu && setting.plan.launcher == Launcher::kTorchrun) {
      remarks.push_back(
          {.level = Level::kWarning,
           .what = "the command starts one rank for each GPU, but there is no GPU here",
           .fix = "--nproc-per-node N; in a container: --gpus all"});
    }
    return remarks;
  }
  if (list != setting.environment.end()) {
    remarks.push_back(judge_list(setting, list->second, gpus));
  } else if (setting.ranks() > gpus) {
    remarks.push_back(
        {.level = Level::kWarning,
         .what = fmt::format("{} ranks on {} GPUs: NCCL refuses two ranks on one device",
                             setting.ranks(), gpus),
         .fix = "one rank for each GPU"});
  } else {
    remarks.push_back({.level = Level::kOk,
                       .what = fmt::format("{} GPUs, {} ranks", gpus, setting.ranks()),
                       .fix = {}});
  }
  if (setting.variable("CUDA_LAUNCH_BLOCKING") == "1") {
    remarks.push_back({.level = Level::kWarning,
                       .what =
                           "CUDA_LAUNCH_BLOCKING=1: the CPU waits for every kernel; collectives in "
                           "two groups can deadlock",
                       .fix = "unset it outside debugging"});
  }
  if (setting.variable("CUDA_DEVICE_MAX_CONNECTIONS") == "0") {
    remarks.push_back({.level = Level::kWarning,
                       .what = "CUDA_DEVICE_MAX_CONNECTIONS=0 is outside 1..32",
                       .fix = "unset it"});
  }
  return remarks;
}

}  // namespace

extern const Check check;
const Check check{.name = "cuda-environment", .title = "GPUs and CUDA's variables", .look = look};

}  // namespace ddpdoctor::preflight::cuda_environment
