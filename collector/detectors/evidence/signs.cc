// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/signs.h"

#include <algorithm>

#include "base/path_ends.h"
#include "collector/detectors/paths/source_blocks.h"
#include "collector/model/native_code.h"
#include "collector/model/python_waits.h"
#include "collector/model/questions.h"
#include "collector/program/questions/blocks.h"
#include "collector/program/questions/locks.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using model::Language;
using model::Thread;

/// Even a dump without Python frames shows where the interpreter runs.
bool runs_interpreter(const Thread& thread) {
  return model::has_native_frame(thread, "_PyEval_") ||
         model::has_native_frame(thread, "Py_RunMain");
}

/// Python called the innermost frame, which is of libc: a table of gdb shows no more native frames.
bool calls_futex(const Thread& thread) {
  const auto& frames = thread.frames;
  return frames.size() > 1 && frames[0].language == Language::kNative &&
         frames[1].language == Language::kPython &&
         (frames[0].function.find("futex") != std::string::npos ||
          frames[0].function.find("sem_wait") != std::string::npos);
}

}  // namespace

const Frame* own_user_frame(const Thread& thread) {
  const Frame* user = model::user_frame(thread);
  for (const std::string_view start : {"_worker_loop", "_bootstrap"}) {
    const std::string_view file =
        start == "_bootstrap" ? "multiprocessing/process.py" : "data/_utils/worker.py";
    const Frame* begin = model::find_python_frame(thread, start, file);
    if (begin != nullptr && user > begin) {  // innermost first: a higher index is further out
      return nullptr;
    }
  }
  return user;
}

std::string_view local_of(const Frame& frame, std::string_view name) {
  const auto found = std::find_if(frame.locals.begin(), frame.locals.end(),
                                  [name](const auto& local) { return local.first == name; });
  return found == frame.locals.end() ? std::string_view() : found->second;
}

std::span<const Frame> called_by_user(const Thread& thread) {
  const std::span<const Frame> all(thread.frames);
  const Frame* user = own_user_frame(thread);
  return user == nullptr ? all : all.first(static_cast<std::size_t>(user - all.data()));
}

const Frame* python_frame_in(const Thread& thread, std::string_view file_suffix,
                             std::initializer_list<std::string_view> functions) {
  if (functions.size() == 0) {
    const auto found =
        std::find_if(thread.frames.begin(), thread.frames.end(), [&](const Frame& f) {
          return f.language == Language::kPython && base::path_ends_with(f.file, file_suffix);
        });
    return found == thread.frames.end() ? nullptr : &*found;
  }
  for (const std::string_view function : functions) {
    if (const Frame* frame = model::find_python_frame(thread, function, file_suffix)) {
      return frame;
    }
  }
  return nullptr;
}

const Frame* waits_for_native_pool(const Thread& thread) {
  for (const Frame& frame : thread.frames) {
    if (frame.language == Language::kPython) {
      return nullptr;
    }
    if (model::pool_of(frame) != nullptr) {
      return &frame;
    }
    // The body of a parallel region runs inside the pool's entry function: then the thread computes
    // and does not wait.
    const bool waits =
        model::is_libc_code(frame) ||
        (frame.function.empty() ? frame.module.empty() : model::surrounds_wait(frame.function));
    if (!waits) {
      return nullptr;
    }
  }
  return nullptr;
}

bool serves_native_pool(const Thread& thread) {
  return innermost_python(thread) == nullptr && !runs_interpreter(thread) &&
         std::any_of(thread.frames.begin(), thread.frames.end(),
                     [](const Frame& frame) { return model::pool_of(frame) != nullptr; });
}

bool waits_for_private_lock(const model::JobModel& job, const Thread& thread) {
  const Frame* python = innermost_python(thread);
  // Conditions, queues and all of multiprocessing sleep on locks, too.
  if (python != nullptr && model::is_on_purpose(model::python_wait(*python))) {
    return false;
  }
  if (waits_for_gil(thread) || !asleep(thread)) {
    return false;
  }
  if (waits_for_mutex(thread)) {
    return true;
  }
  const bool in_logging_lock =
      python != nullptr && python->file.ends_with("logging/__init__.py") &&
      (python->function == "acquire" || python->function.ends_with(".acquire"));
  const bool in_lock_code = in_logging_lock ||
                            model::has_native_frame(thread, "PyThread_acquire_lock") ||
                            model::has_native_frame(thread, "PyMutex_Lock") ||
                            model::has_native_frame(thread, "lock_acquire");
  const bool native_unread =
      thread.frames.empty() || thread.frames.front().language == Language::kPython;
  const bool sleeps_on_word = thread.wchan.find("futex") != std::string::npos ||
                              (thread.waits_on && thread.waits_on->kind == "semaphore");
  if (!in_lock_code && !(native_unread && sleeps_on_word) && !calls_futex(thread)) {
    return false;
  }
  return (python != nullptr && python->file.ends_with("logging/__init__.py")) ||
         !wanted_locks(job, thread).empty();
}

bool waits_for_mutex(const Thread& thread) {
  if (thread.waits_on && thread.waits_on->kind == "mutex") {
    return true;
  }
  for (const Frame& frame : thread.frames) {
    if (frame.language == Language::kPython) {
      return false;
    }
    if (frame.function.find("lll_lock_wait") != std::string::npos ||
        frame.function.find("pthread_mutex_lock") != std::string::npos) {
      return true;
    }
    if (!model::is_libc_code(frame)) {
      return false;
    }
  }
  return false;
}

std::vector<std::string> wanted_locks(const model::JobModel& job, const Thread& thread) {
  const Frame* frame = innermost_python(thread);
  return frame == nullptr ? std::vector<std::string>()
                          : program::locks_taken(lines_of(job, frame->file), frame->line);
}

bool waits_for_gil(const Thread& thread) {
  if (thread.waits_on && thread.waits_on->kind == "gil") {
    return true;
  }
  for (const Frame& frame : thread.frames) {
    if (frame.language == Language::kPython) {
      return false;
    }
    if (model::takes_gil(frame.function)) {
      return true;
    }
  }
  return false;
}

bool waits_for_batch(const Thread& thread) {
  return python_frame_in(thread, "torch/utils/data/dataloader.py",
                         {"_try_get_data", "_get_data", "_next_data"}) != nullptr &&
         (python_frame_in(thread, "torch/utils/data/dataloader.py", {"_try_get_data"}) != nullptr ||
          python_frame_in(thread, "multiprocessing/queues.py", {"get"}) != nullptr ||
          python_frame_in(thread, "/queue.py", {"get"}) != nullptr);
}

bool waits_for_indices(const Thread& thread) {
  return python_frame_in(thread, "data/_utils/worker.py", {"_worker_loop"}) != nullptr &&
         python_frame_in(thread, "multiprocessing/queues.py", {"get"}) != nullptr &&
         own_user_frame(thread) == nullptr;
}

bool asleep(const Thread& thread) {
  return thread.state != 'R';
}

bool polls(const model::JobModel& job, const Thread& thread) {
  const Frame* user = own_user_frame(thread);
  if (user == nullptr) {
    return false;
  }
  const auto lines = job.sources.find(user->file);
  if (lines == job.sources.end()) {
    return false;
  }
  const auto blocks = program::enclosing(lines->second, user->line);
  return std::any_of(blocks.begin(), blocks.end(), [](const program::Block& block) {
    return block.kind == program::BlockKind::kWhile;
  });
}

bool sleeps_by_choice(const Thread& thread) {
  const Frame* python = innermost_python(thread);
  const Frame* user = own_user_frame(thread);
  return python != nullptr && python == user &&
         (model::has_native_frame(thread, "nanosleep") ||
          model::has_native_frame(thread, "pysleep") ||
          thread.wchan.find("nanosleep") != std::string::npos);
}

}  // namespace ddpdoctor::detectors
