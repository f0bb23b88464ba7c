// SPDX-License-Identifier: Apache-2.0
// torch aborts a communicator in a thread of its own and waits for it: the line of the user is in
// the stack of another thread.
#include "collector/detectors/evidence/teardown_call.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using model::Thread;

const Frame* frame_with(const Thread& thread, std::initializer_list<std::string_view> parts) {
  const auto found =
      std::find_if(thread.frames.begin(), thread.frames.end(), [&parts](const Frame& frame) {
        return frame.language == model::Language::kNative &&
               std::any_of(parts.begin(), parts.end(), [&frame](std::string_view part) {
                 return frame.function.find(part) != std::string::npos;
               });
      });
  return found == thread.frames.end() ? nullptr : &*found;
}

/// Of NCCL, or of RCCL, which has the same names.
const Frame* ends_communicator(const Thread& thread) {
  return frame_with(thread, {"ncclCommAbort", "ncclCommDestroy", "ncclCommFinalize"});
}

bool is_watchdog(const Thread& thread) {
  return frame_with(thread, {"ncclCommWatchdog", "watchdogHandler", "heartbeatMonitor",
                             "HeartbeatMonitor", "Watchdog::run"}) != nullptr;
}

}  // namespace

std::optional<TeardownCall> teardown_call(const model::Process& process) {
  TeardownCall out;
  for (const Thread& thread : process.threads) {
    const Frame* call = ends_communicator(thread);
    const Frame* asks =
        frame_with(thread, {"ProcessGroupNCCL::abort", "ProcessGroupNCCL::shutdown"});
    if (call != nullptr && out.call == nullptr) {
      out.thread = &thread;
      out.call = call;
    } else if (asks != nullptr && call == nullptr) {
      out.asker = &thread;
      out.asker_call = asks;
    }
  }
  const bool by_watchdog =
      out.call != nullptr &&
      (is_watchdog(*out.thread) || (out.asker != nullptr && is_watchdog(*out.asker)));
  return out.call == nullptr || by_watchdog ? std::nullopt : std::optional(out);
}

}  // namespace ddpdoctor::detectors
