// SPDX-License-Identifier: Apache-2.0
// Frames of libc are skipped by their library, because their names are often missing. Which
// primitive waits is therefore the first name that shows it.
#include "collector/detectors/evidence/own_wait.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/model/accelerators.h"
#include "collector/model/python_waits.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using model::Thread;
using std::string_view;

/// The argument of glibc's functions that wait for a futex.
bool has_scope(const Frame& frame, string_view scope) {
  return std::any_of(frame.locals.begin(), frame.locals.end(), [scope](const auto& local) {
    return local.first == "private" && local.second == scope;
  });
}

/// Shared by processes, or waits for the device or the network and not for a thread.
bool is_foreign(const Frame& frame) {
  constexpr std::array<string_view, 3> kFunctions = {"semlock_", "SemLock", "sem_open"};
  const model::DeviceLibraryFile* library = model::device_library_of(frame);
  return has_scope(frame, "128") || base::contains_any(frame.function, kFunctions) ||
         base::contains(frame.module, "_multiprocessing") ||
         (library != nullptr && library->part != model::DevicePart::kNetwork);
}

/// A lock that the interpreter takes for itself; other functions of it wait for what Python code
/// asked for.
bool is_lock_of_interpreter(string_view function) {
  constexpr std::array<string_view, 13> kFunctions = {
      "_enter_buffered_busy", "_PyImport",          "import_",    "PyThreadState", "_PyThreadState",
      "new_threadstate",      "PyInterpreterState", "PyMutex",    "_PyMutex",      "_PyRWMutex",
      "_PyRuntime",           "Py_AddPendingCall",  "_PyOnceFlag"};
  return base::begins_with_any(function, kFunctions);
}

/// `lock.acquire()` of Python code.
bool is_pythons_acquire(string_view function) {
  constexpr std::array<string_view, 5> kFunctions = {"lock_", "rlock_", "acquire_timed",
                                                     "_thread_lock_", "_thread_RLock"};
  return base::begins_with_any(function, kFunctions);
}

/// The innermost Python function is one that takes a lock and not a condition.
bool takes_python_lock(const Thread& thread) {
  const Frame* python = model::innermost_python(thread);
  if (python == nullptr) {
    return false;
  }
  const string_view function = python->function;
  const bool acquires = function.ends_with("acquire") || function.ends_with("_acquireLock");
  return model::python_wait(*python) == model::PythonWait::kLock ||
         (acquires && (python->file.ends_with("logging/__init__.py") ||
                       base::contains(python->file, "importlib._bootstrap")));
}

/// How the frames inside the asker wait.
struct SleepKind {
  bool mutex = false;
  bool signal = false;
  bool python = false;  // PyThread_acquire_lock: a lock or a condition of Python
  bool of_libc = false;
  bool semaphore = false;  // the locks of Python's C interface
  bool timed = false;
  bool sleeps = false;  // in libc, where a thread without a symbol may wait

  void take(const Frame& frame) {
    mutex = mutex || model::takes_mutex(frame.function);
    signal = signal || model::awaits_signal_of_thread(frame.function);
    python = python || frame.function.starts_with("PyThread_acquire_lock") ||
             frame.function.starts_with("_PyParkingLot") ||
             frame.function.starts_with("_PySemaphore");
    of_libc = of_libc || model::has_lock_of_libc(frame.function);
    semaphore = semaphore || frame.function.starts_with("do_futex_wait") ||
                frame.function.find("sem_wait") != std::string::npos;
    // It waits without a limit: FreeBSD's sem_wait is a sem_clockwait_np.
    timed =
        (timed || model::has_timeout(frame.function)) && frame.function != "PyThread_acquire_lock";
    sleeps = sleeps || model::is_libc_code(frame);
  }
};

bool surrounds(const Frame& frame) {
  return model::is_libc_code(frame) || frame.function.starts_with("PyThread_acquire_lock") ||
         frame.function.starts_with("_PyParkingLot") ||
         frame.function.starts_with("_PySemaphore") ||
         (frame.function.empty() ? frame.module.empty() : model::surrounds_wait(frame.function));
}

std::optional<OwnWait> wait_for(OwnWaitKind kind, const Frame* asker,
                                const model::NativePool* pool = nullptr) {
  return OwnWait{.kind = kind, .asker = asker, .pool = pool};
}

}  // namespace

std::optional<OwnWait> own_wait(const Thread& thread) {
  SleepKind how;
  for (const Frame& frame : thread.frames) {
    if (frame.language != model::Language::kNative || is_foreign(frame)) {
      break;
    }
    const model::NativePool* pool = model::pool_of(frame);
    if (pool == nullptr && surrounds(frame)) {
      how.take(frame);
      continue;
    }
    if (model::takes_gil(frame.function)) {  // its wait has a timeout, and is repeated
      return wait_for(OwnWaitKind::kLock, &frame);
    }
    if (how.timed || !asleep(thread)) {
      return std::nullopt;
    }
    if (model::is_call_of_buffered_file(frame.function)) {
      return how.semaphore || how.python ? wait_for(OwnWaitKind::kLock, &frame) : std::nullopt;
    }
    if (frame.function == "drop_gil") {  // it lets another thread take the GIL first
      return wait_for(OwnWaitKind::kSignal, &frame);
    }
    if (pool != nullptr && how.mutex) {
      return wait_for(OwnWaitKind::kLock, &frame);  // a lock of the pool, held by a thread of it
    }
    if (pool != nullptr) {
      return how.signal || how.sleeps ? wait_for(OwnWaitKind::kPool, &frame, pool) : std::nullopt;
    }
    if (model::is_interpreter_code(frame) || is_pythons_acquire(frame.function)) {
      const bool lock = is_lock_of_interpreter(frame.function) ||
                        (is_pythons_acquire(frame.function) && takes_python_lock(thread));
      return lock ? wait_for(OwnWaitKind::kLock, &frame) : std::nullopt;
    }
    if (how.mutex || how.python || how.of_libc) {
      return wait_for(OwnWaitKind::kLock, &frame);
    }
    return how.signal ? wait_for(OwnWaitKind::kSignal, &frame) : std::nullopt;
  }
  // A stack of Python code alone, or one whose native frames end in the lock's own code.
  return !how.timed && asleep(thread) && takes_python_lock(thread)
             ? wait_for(OwnWaitKind::kLock, nullptr)
             : std::nullopt;
}

bool is_private_futex(const Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(),
                     [](const Frame& frame) { return has_scope(frame, "0"); });
}

bool lists_native_threads(const model::Process& process) {
  constexpr std::array<string_view, 4> kTools = {"gdb", "lldb", "eu-stack", "sample"};
  const string_view tool = process.threads.front().capture;
  return !model::was_dumped(process) ||
         (base::contains_any(tool, kTools) && !tool.ends_with(model::kOneOfMany));
}

bool is_exiting(const Thread& thread) {
  constexpr std::array<string_view, 12> kExits = {
      "Py_FinalizeEx",         "Py_Finalize",    "Py_Exit",          "exit",
      "__run_exit_handlers",   "_Exit",          "_dl_fini",         "__cxa_finalize",
      "finalize_interp_clear", "_PyAtExit_Call", "atexit_callfuncs", "call_py_exitfuncs"};
  return std::any_of(thread.frames.begin(), thread.frames.end(), [&kExits](const Frame& frame) {
    const string_view name = std::string_view(frame.function).substr(0, frame.function.find('('));
    return frame.language == model::Language::kNative &&
           std::find(kExits.begin(), kExits.end(), name) != kExits.end();
  });
}

std::optional<OwnWait> waits_alone(const model::Process& process) {
  if (process.threads.size() != 1) {
    return std::nullopt;
  }
  const Thread& only = process.threads.front();
  const auto wait = own_wait(only);
  if (!wait || wait->asker == nullptr || wait->kind == OwnWaitKind::kPool) {
    return wait;
  }
  const auto from = static_cast<std::size_t>(wait->asker - only.frames.data()) + 1;
  const Frame* again = frame_in_code_of(*wait->asker, only, from);
  const std::string name = plain_function(wait->asker->function);
  const bool twice = again != nullptr && !name.empty() && plain_function(again->function) == name;
  return twice ? std::nullopt : wait;
}

}  // namespace ddpdoctor::detectors
