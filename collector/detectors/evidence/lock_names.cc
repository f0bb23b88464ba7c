// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/lock_names.h"

#include <algorithm>
#include <string_view>

#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/own_wait.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/model/native_code.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {

std::string lock_taker(const model::Thread& thread) {
  if (const auto taker = mutex_taker(thread)) {
    return function_said(thread.frames[*taker]);
  }
  const auto of_libc = std::find_if(
      thread.frames.begin(), thread.frames.end(),
      [](const model::Frame& frame) { return model::has_lock_of_libc(frame.function); });
  if (of_libc != thread.frames.end()) {
    return of_libc->function;
  }
  if (const auto wait = own_wait(thread); wait && wait->asker != nullptr) {
    if (model::is_call_of_buffered_file(wait->asker->function)) {
      return std::string(kTakerOfBuffer);
    }
    return model::takes_gil(wait->asker->function) ? "the GIL" : function_said(*wait->asker);
  }
  for (const model::Frame& frame : thread.frames) {
    const std::string_view name = frame.function;
    if (frame.language != model::Language::kNative) {
      break;
    }
    if (!name.empty() && name.find("lll_lock") == name.npos &&
        name.find("mutex_lock") == name.npos && name.find("futex") == name.npos) {
      return frame.function;
    }
  }
  return {};
}

std::string lock_name(const model::JobModel& job, const model::Thread& thread) {
  const model::Frame* python = model::innermost_python(thread);
  const bool in_library = python != nullptr && (python->file.ends_with("/threading.py") ||
                                                python->file.ends_with("logging/__init__.py"));
  const bool logs = python_frame_in(thread, "logging/__init__.py") != nullptr;
  if (const auto wanted = wanted_locks(job, thread); wanted.size() == 1 && !(in_library && logs)) {
    return "the lock " + wanted[0];
  }
  if (logs) {
    return in_library && python_frame_in(thread, "logging/__init__.py", {"_acquireLock"}) != nullptr
               ? "the lock of logging"
               : "the lock of a logging handler";
  }
  if (python != nullptr && python->file.find("importlib._bootstrap") != std::string::npos) {
    return "an import lock";
  }
  if (const std::string taker = lock_taker(thread); !taker.empty()) {
    if (taker == "the GIL") {
      return taker;
    }
    const bool buffer = taker.starts_with(kTakerOfBuffer);
    return buffer ? "the lock of a buffered file such as stdout" : "the lock in " + taker;
  }
  return "a lock";
}

const model::Frame* asking_line(const model::Thread& thread) {
  const auto found =
      std::find_if(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
        return frame.language == model::Language::kPython &&
               !frame.file.ends_with("/threading.py") &&
               frame.file.find("importlib._bootstrap") == std::string::npos;
      });
  return found == thread.frames.end() ? nullptr : &*found;
}

const model::Frame* asking_function(const model::Thread& thread) {
  const model::Frame* inner = model::telling_frame(thread);
  for (const model::Frame& frame : thread.frames) {
    if (inner != nullptr && &frame >= inner && !model::is_interpreter_code(frame) &&
        !frame.function.empty()) {
      return &frame;
    }
  }
  return inner;
}

}  // namespace ddpdoctor::detectors
