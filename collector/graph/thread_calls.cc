// SPDX-License-Identifier: Apache-2.0
#include "collector/graph/thread_calls.h"

#include <algorithm>
#include <string>
#include <vector>

#include "collector/graph/activity_rules.h"
#include "collector/model/questions.h"

namespace ddpdoctor::graph {
namespace {

bool is_python(const std::string& file) {
  return file.ends_with(".py");
}

/// The record and the stack both have functions of the same language.
bool are_comparable(const std::vector<model::CallSite>& callers,
                    const std::vector<const model::Frame*>& frames) {
  return std::any_of(callers.begin(), callers.end(), [&frames](const model::CallSite& caller) {
    return std::any_of(frames.begin(), frames.end(), [&caller](const model::Frame* frame) {
      return is_python(frame->file) == is_python(caller.file);
    });
  });
}

}  // namespace

bool may_have_called(const model::Thread& thread, const model::CollectiveCall& record) {
  const auto frames = model::user_frames(thread);
  const auto callers = callers_of(record);
  return !are_comparable(callers, frames) ||
         std::any_of(callers.begin(), callers.end(), [&frames](const model::CallSite& caller) {
           return std::any_of(frames.begin(), frames.end(), [&caller](const model::Frame* frame) {
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
