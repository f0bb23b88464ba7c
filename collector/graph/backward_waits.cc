// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/backward_waits.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "collector/graph/activity_rules.h"
#include "collector/graph/device_waits.h"

namespace ddpdoctor::graph {
namespace {

bool calls_native(std::span<const stacks::Frame> frames,
                  std::initializer_list<std::string_view> parts) {
  return std::any_of(frames.begin(), frames.end(), [&parts](const stacks::Frame& frame) {
    return frame.language == stacks::Language::kNative &&
           std::any_of(parts.begin(), parts.end(), [&frame](std::string_view part) {
             return frame.function.find(part) != std::string::npos;
           });
  });
}

/// DeepSpeed averages gradients itself, in hooks.
bool has_own_reduction(std::span<const stacks::Frame> frames) {
  return std::any_of(frames.begin(), frames.end(), [](const stacks::Frame& frame) {
    return frame.file.find("deepspeed/runtime/") != std::string::npos;
  });
}

/// The activity of autograd's thread.
Activity activity_in(const model::JobModel& job, const CallInBackward& call) {
  const stacks::Frame* at = nullptr;
  const ActivityRule* rule = deciding_rule(call.thread->frames, &at);
  return call.activity != Activity::kUnknown ? call.activity
         : rule != nullptr                   ? rule->activity
                                             : activity_by_state(job, *call.thread);
}

}  // namespace

std::optional<Activity> wait_in_backward(const model::JobModel& job,
                                         std::span<const stacks::Frame> frames,
                                         const model::Process& process,
                                         const model::Thread& thread) {
  if (!is_in_backward(frames)) {
    return std::nullopt;
  }
  if (calls_native(frames, {"c10d::", "gloo::", "ncclAllReduce"})) {
    return Activity::kDdpBackward;
  }
  if (const auto call = call_in_backward(process)) {
    return activity_in(job, *call);
  }
  const bool computes =
      thread.state == 'R' || calls_native(frames, {"at::native", "GOMP", "gomp_", "mkl", "dnnl"});
  return computes || has_own_reduction(frames) ? std::nullopt
                                               : std::optional(Activity::kDdpBackward);
}

}  // namespace ddpdoctor::graph
