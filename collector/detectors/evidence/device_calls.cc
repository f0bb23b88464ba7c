// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/device_calls.h"

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/processes.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/model/accelerators.h"
#include "collector/model/native_code.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;

bool is_named(const Frame& frame) {
  return !frame.function.empty() && !frame.function.starts_with('?') &&
         !frame.function.starts_with("0x") && !frame.function.starts_with('<');
}

/// Between a library and Python: bindings, and the start of a thread.
bool is_glue(const Frame& frame) {
  constexpr std::array<std::string_view, 4> kGlue = {"pybind11::", "std::", "start_thread",
                                                     "execute_native_thread"};
  return !is_named(frame) || model::is_libc_code(frame) ||
         base::begins_with_any(frame.function, kGlue);
}

bool is_outside(const Frame& frame) {
  return frame.language != model::Language::kNative || model::is_interpreter_code(frame);
}

/// The outermost function below Python that has a name.
const Frame* caller_from(const model::Thread& thread, std::size_t from) {
  const Frame* caller = nullptr;
  for (std::size_t i = from; i < thread.frames.size() && !is_outside(thread.frames[i]); ++i) {
    caller = is_glue(thread.frames[i]) ? caller : &thread.frames[i];
  }
  return caller;
}

/// Sleeps until a lock of a library is free; locks of the interpreter have detectors of their own.
std::optional<DeviceCall> lock_in_library(const model::Thread& thread, std::size_t at) {
  const Frame& asker = thread.frames[at];
  if (is_outside(asker) || is_glue(asker) || model::takes_gil(asker.function) ||
      model::enters_python(asker.function) || asker.module.empty()) {
    return std::nullopt;
  }
  return DeviceCall{
      .inside = &asker, .call = &asker, .caller = caller_from(thread, at + 1), .lock = true};
}

/// A process that its tool does not show at work; helpers and launchers always wait.
bool may_wait_in_driver(const model::Process& process) {
  return model::was_dumped(process) && alive(process) &&
         (process.role == model::Role::kRank || process.role == model::Role::kOther);
}

/// A process whose main thread waits in a library.
struct WaitInDriver {
  const model::Process* process = nullptr;
  DeviceCall call;
};

/// The first such process. Nothing if the main thread of one computes: the others may wait for it.
std::optional<WaitInDriver> first_in_driver(const model::JobModel& job) {
  std::optional<WaitInDriver> first;
  for (const model::Process* process : processes(job)) {
    const model::Thread* main = model::main_thread(*process);
    if (main == nullptr || !may_wait_in_driver(*process)) {
      continue;
    }
    if (main->state == 'R') {
      return std::nullopt;
    }
    const auto call = first ? std::nullopt : device_call_of(*main);
    const bool locked = call && call->lock && model::is_in_driver_or_runtime(*call->inside);
    if (call && (locked || model::user_frame(*main) == nullptr)) {
      first = WaitInDriver{.process = process, .call = *call};
    }
  }
  return first;
}

}  // namespace

std::optional<DeviceCall> device_call_of(const model::Thread& thread) {
  DeviceCall found;
  std::size_t at = 0;
  const auto& frames = thread.frames;
  while (at < frames.size() && frames[at].language == model::Language::kNative &&
         (model::is_libc_code(frames[at]) || model::takes_mutex(frames[at].function) ||
          (is_named(frames[at]) && model::surrounds_wait(frames[at].function)))) {
    found.lock = found.lock || model::takes_mutex(frames[at].function);
    ++at;
  }
  if (at == frames.size() || !model::is_in_driver_or_runtime(frames[at])) {
    return found.lock && at < frames.size() ? lock_in_library(thread, at) : std::nullopt;
  }
  found.inside = &frames[at];
  for (; at < frames.size() && !is_outside(frames[at]); ++at) {
    if (model::is_in_driver_or_runtime(frames[at])) {
      found.call = is_named(frames[at]) ? &frames[at] : found.call;
    } else if (is_named(frames[at])) {
      break;
    }
  }
  if (found.call == nullptr && at < frames.size() && !is_outside(frames[at]) &&
      !is_glue(frames[at])) {
    found.call = &frames[at++];
  }
  found.caller = caller_from(thread, at);
  return found;
}

std::string device_call_said(const DeviceCall& call) {
  if (call.call == nullptr) {
    return {};
  }
  const std::string name = base::printable(plain_function(call.call->function));
  const std::string caller = call.caller == nullptr
                                 ? std::string()
                                 : base::printable(plain_function(call.caller->function));
  return caller.empty() || caller == name ? name : fmt::format("{}, called by {}", name, caller);
}

std::string in_which_call(const graph::Standing& standing, std::string_view before) {
  const auto call = standing.user.known() || standing.thread == nullptr
                        ? std::nullopt
                        : device_call_of(*standing.thread);
  return call && call->call != nullptr ? fmt::format("{} in {}", before, device_call_said(*call))
                                       : std::string();
}

std::optional<Finding> where_in_driver(const graph::Examination& examination) {
  if (examination.job.progress != model::Progress::kUnknown || examination.job.ended ||
      model::previous(examination.job) != nullptr) {
    return std::nullopt;
  }
  const auto waits = first_in_driver(examination.job);
  const std::string said_call = waits ? device_call_said(waits->call) : std::string();
  if (said_call.empty()) {
    return std::nullopt;
  }
  const model::Process& process = *waits->process;
  const DeviceCall& call = waits->call;
  const model::RankSet ranks = process.rank ? model::RankSet{*process.rank} : model::RankSet{};
  const Frame* user = model::user_frame(*model::main_thread(process));
  Finding finding;
  finding.kind = "undetermined";
  finding.confidence = Confidence::kPossible;
  finding.waiting = ranks;
  finding.summary = fmt::format(
      "{} waits{} inside {}, in {}; {}",
      process.rank ? said(ranks)
                   : fmt::format("the main thread of {}", named(process.pid, "a process")),
      call.lock ? " for a lock" : "", base::printable(call.inside->module), said_call,
      call.lock ? "the dump does not show its holder"
                : "one dump does not show whether the device makes progress");
  if (user != nullptr) {
    finding.locations.push_back(
        location(model::call_site(*user), ranks, fmt::format("it calls {} here", said_call)));
  }
  finding.fix = fmt::format(
      "Dump the stacks again after 10 s. If they are the same, update the {}, or run the program "
      "without the call of {}.",
      model::is_in_driver_or_runtime(*call.inside) ? "driver" : "library",
      base::printable(
          plain_function((call.caller != nullptr ? call.caller : call.call)->function)));
  return finding;
}

}  // namespace ddpdoctor::detectors
