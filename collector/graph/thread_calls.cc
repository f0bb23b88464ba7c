// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/thread_calls.h"

#include <algorithm>

#include "collector/graph/activity_rules.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {

bool may_have_called(const model::Thread& thread, const model::CollectiveCall& record) {
  const auto frames = model::user_frames(thread);
  const auto callers = callers_of(record);
  return frames.empty() || callers.empty() ||
         std::any_of(callers.begin(), callers.end(), [&frames](const model::CallSite& caller) {
           return std::any_of(frames.begin(), frames.end(), [&caller](const stacks::Frame* frame) {
             return frame->file == caller.file &&
                    plain_name(frame->function) == plain_name(caller.function);
           });
         });
}

const model::CollectiveCall* open_call_of(const model::Thread& thread, const Calls& calls) {
  const auto own = std::find_if(calls.rbegin(), calls.rend(), [&thread](const auto* call) {
    return may_have_called(thread, *call);
  });
  return own == calls.rend() || model::is_over((*own)->state) ? nullptr : *own;
}

}  // namespace ddpdoctor::graph
