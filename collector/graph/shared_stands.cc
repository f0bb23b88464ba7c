// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/shared_stands.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "collector/graph/device_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

/// Dumped in a Python line whose native call the dump does not show, and no table names.
bool stands_unnamed(const Standing& one) {
  const bool unnamed = one.activity == Activity::kComputing || one.activity == Activity::kUnknown;
  return unnamed && !one.moved && one.process != nullptr && one.thread != nullptr &&
         model::was_dumped(*one.process) && !one.thread->frames.empty() &&
         one.thread->frames.front().language == stacks::Language::kPython;
}

/// Its innermost line is in torch's own code for tensors: it calls the device, and a host that does
/// not return from there waits until the device takes the call.
bool is_in_code_for_tensors(const Standing& one) {
  constexpr std::array<std::string_view, 7> kForTensors = {
      "torch/nn/",     "torch/optim/",    "torch/distributed/fsdp/",       "torch/_tensor.py",
      "torch/_ops.py", "torch/autograd/", "torch/distributed/_composable/"};
  return stands_unnamed(one) && base::contains_any(one.thread->frames.front().file, kForTensors);
}

bool runs_torch(const Standing& one) {
  return std::any_of(
      one.thread->frames.begin(), one.thread->frames.end(),
      [](const stacks::Frame& frame) { return base::contains(frame.file, "torch/"); });
}

/// The stack shows a device, or the process does.
bool shows_gpu(const model::JobModel& job, const Standing& one) {
  return one.process != nullptr && one.thread != nullptr &&
         (one.activity == Activity::kGpu || is_on_gpu(job, *one.process) ||
          waits_for_device(one.thread->frames));
}

}  // namespace

void take_shared_stands(const model::JobModel& job, std::vector<Standing>& standings) {
  std::vector<Standing*> shared;
  const bool waited = std::any_of(standings.begin(), standings.end(), [](const Standing& one) {
    return one.waits_for_ranks() || one.activity == Activity::kGpu;
  });
  const bool shown = std::any_of(standings.begin(), standings.end(),
                                 [&job](const Standing& one) { return shows_gpu(job, one); });
  const bool busy = model::all_gpus_are_busy(job);
  const auto beside = [&standings](const Standing& one) {
    return stands_unnamed(one) &&
           std::any_of(standings.begin(), standings.end(), [&one](const Standing& other) {
             return other.rank != one.rank && stands_unnamed(other) &&
                    same_above_driver(one.thread->frames, other.thread->frames);
           });
  };
  const bool several = busy && std::any_of(standings.begin(), standings.end(), beside);
  for (Standing& one : standings) {
    const bool alone = busy ? (waited || several) && stands_unnamed(one)
                            : waited && shown && is_in_code_for_tensors(one);
    if (beside(one) || alone) {
      shared.push_back(&one);
    }
  }
  const bool everywhere =
      shared.size() == standings.size() &&
      std::all_of(shared.begin(), shared.end(), [&shared](const Standing* one) {
        return same_above_driver(one->thread->frames, shared.front()->thread->frames);
      });
  const bool gpus =
      shown || busy || std::any_of(standings.begin(), standings.end(), [](const Standing& one) {
        return one.thread != nullptr && runs_torch(one);
      });
  if (everywhere || !gpus) {
    return;  // a step of a job without a fault looks the same
  }
  for (Standing* const one : shared) {
    one->activity = Activity::kGpu;
    one->on_cpu = false;
  }
}

}  // namespace ddpdoctor::graph
