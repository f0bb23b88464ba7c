// SPDX-License-Identifier: Apache-2.0
// gdb stops all threads at one moment, so a thread in take_gil and one without the GIL are seen
// together only if a third one holds it. A thread that computes is not meant: it will release it.
#include "collector/detectors/evidence/gil_holder.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <vector>

#include "collector/detectors/evidence/native_locks.h"
#include "collector/detectors/evidence/signs.h"
#include "collector/model/native_code.h"

namespace ddpdoctor::detectors {
namespace {

bool is_native_frame(const model::Frame& frame) {
  return frame.language == model::Language::kNative;
}

bool runs_python_code(const model::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), model::is_interpreter_code);
}

/// In the C code of threading.Lock or RLock, called by Python: it has released the GIL.
bool waits_in_lock_of_python(const model::Thread& thread) {
  bool lock = false;
  for (const model::Frame& frame : thread.frames) {
    if (!is_native_frame(frame)) {
      break;
    }
    const bool takes = frame.function.find("PyThread_acquire_lock") != std::string::npos;
    lock = lock || takes;
    if (!takes && model::says_why(frame) && !model::is_interpreter_code(frame) &&
        frame.function.find("acquire") == std::string::npos) {
      return false;
    }
  }
  return lock;
}

/// The pool whose code the thread runs at all, in its own frames or in those that called Python.
const model::NativePool* pool_in(const model::Thread& thread) {
  for (const model::Frame& frame : thread.frames) {
    if (const model::NativePool* pool = model::pool_of(frame)) {
      return pool;
    }
  }
  return nullptr;
}

/// A thread of the pool that Python did not start, and that called Python.
bool calls_from_pool(const model::Thread& thread, std::string_view pool) {
  const auto last = std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                                 [](const model::Frame& frame) { return !is_native_frame(frame); });
  return std::any_of(thread.frames.rbegin(), last, [pool](const model::Frame& frame) {
    const model::NativePool* own = model::pool_of(frame);
    return own != nullptr && own->name == pool;
  });
}

/// The file of a library, or the outermost C++ namespace of a function that was built with debug
/// information: "libmpi.so", "horovod" of "horovod::torch::WaitAndClear". Empty if neither is
/// known.
std::string_view library_or_namespace(const model::Frame& frame) {
  if (!frame.module.empty()) {
    return frame.module;
  }
  const std::string_view function = frame.function;
  const std::size_t end = function.find("::");
  const std::string_view outer = function.substr(0, end == function.npos ? 0 : end);
  const bool named = std::all_of(outer.begin(), outer.end(),
                                 [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
  return named && outer != "std" && outer != "__gnu_cxx" ? outer : std::string_view();
}

/// The library of the innermost frame that is not libc's or C++'s; empty if it is not known.
std::string_view waiting_library(const model::Thread& thread) {
  for (const model::Frame& frame : thread.frames) {
    if (!is_native_frame(frame)) {
      break;
    }
    if (const auto library = library_or_namespace(frame);
        !model::is_libc_code(frame) && !library.empty()) {
      return library;
    }
  }
  return {};
}

/// The library that started the thread and called Python: its frames are outside of all Python
/// code.
bool is_called_by(const model::Thread& thread, std::string_view library) {
  const auto python =
      std::find_if(thread.frames.rbegin(), thread.frames.rend(),
                   [](const model::Frame& frame) { return model::is_interpreter_code(frame); });
  return python != thread.frames.rend() &&
         std::any_of(thread.frames.rbegin(), python, [library](const model::Frame& frame) {
           return library_or_namespace(frame) == library;
         });
}

/// Python code, or the function of the interpreter that runs it.
bool is_evaluation(const model::Frame& frame) {
  return !is_native_frame(frame) || frame.function.find("PyEval_EvalFrame") != std::string::npos;
}

bool evaluates(const model::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), is_evaluation);
}

/// `gil_scoped_acquire::gil_scoped_acquire`: the constructor of a guard.
bool is_constructor(const model::Frame& frame) {
  const std::string name = plain_function(frame.function);
  const std::size_t last = name.rfind("::");
  return last != name.npos &&
         std::string_view(name).substr(0, last).ends_with(std::string_view(name).substr(last + 2));
}

/// It sleeps, or asks the kernel to run other threads while it polls.
bool lets_others_run(const model::Thread& thread) {
  return sleeps_in_kernel(thread) ||
         (!thread.frames.empty() && model::is_libc_code(thread.frames.front()) &&
          thread.frames.front().function.find("_yield") != std::string::npos);
}

/// Its innermost functions enter Python again: PyGILState_Ensure, pybind11::gil_scoped_acquire.
const model::Frame* reenters_python(const model::Thread& thread) {
  const model::Frame* enters = nullptr;
  for (const model::Frame& frame : thread.frames) {
    if (is_evaluation(frame)) {
      break;
    }
    if (model::releases_gil(frame.function)) {
      return nullptr;
    }
    enters = model::enters_python(frame.function) ? &frame : enters;
  }
  return enters;
}

/// In a wait of libc for the end of a thread.
bool joins_a_thread(const model::Thread& thread) {
  return !thread.frames.empty() && model::is_libc_code(thread.frames.front()) &&
         thread.frames.front().function.find("join") != std::string::npos;
}

}  // namespace

bool has_released_gil(const model::Thread& thread) {
  for (const model::Frame& frame : thread.frames) {
    if (model::releases_gil(frame.function) || model::blocks_without_gil(frame)) {
      return true;
    }
    if (model::is_interpreter_code(frame)) {
      return false;
    }
  }
  return false;
}

const model::Thread* callback_behind(const model::Process& process, const model::Thread& holder) {
  const std::string_view library = waiting_library(holder);
  if (library.empty() || !lets_others_run(holder)) {
    return nullptr;
  }
  const auto found = std::find_if(process.threads.begin(), process.threads.end(),
                                  [&holder, library](const model::Thread& thread) {
                                    return &thread != &holder && waits_for_gil(thread) &&
                                           is_called_by(thread, library);
                                  });
  return found == process.threads.end() ? nullptr : &*found;
}

std::optional<OwnGil> own_gil(const model::Process& process) {
  OwnGil out;
  for (const model::Thread& thread : process.threads) {
    if (thread.gil || thread.frames.empty() || !is_native_frame(thread.frames.front())) {
      return std::nullopt;
    }
    const bool again =
        waits_for_gil(thread) && evaluates(thread) && reenters_python(thread) != nullptr;
    out.thread = again && out.thread == nullptr ? &thread : out.thread;
    if (!waits_for_gil(thread) && (runs_python_code(thread) || !sleeps_in_kernel(thread))) {
      return std::nullopt;
    }
    out.joiner = joins_a_thread(thread) ? &thread : out.joiner;
  }
  if (out.thread == nullptr) {
    return std::nullopt;
  }
  const model::Frame* enters = reenters_python(*out.thread);
  const auto after = out.thread->frames.begin() + (enters - out.thread->frames.data()) + 1;
  const auto asker = std::find_if(after, out.thread->frames.end(), [](const model::Frame& frame) {
    return is_native_frame(frame) && model::says_why(frame) && !model::is_interpreter_code(frame) &&
           !is_constructor(frame);
  });
  out.asker = asker == out.thread->frames.end() ? nullptr : &*asker;
  return out;
}

std::optional<PoolBehindGil> pool_behind_gil(const model::Process& process) {
  PoolBehindGil out;
  std::vector<const model::Thread*> may_hold;
  for (const model::Thread& thread : process.threads) {
    if (thread.gil) {
      return std::nullopt;
    }
    if (waits_for_gil(thread)) {
      const model::NativePool* pool = pool_in(thread);
      out.pool = pool == nullptr ? out.pool : pool->name;
    } else if (runs_python_code(thread) && !waits_in_lock_of_python(thread)) {
      may_hold.push_back(&thread);
    }
  }
  const bool all =
      !out.pool.empty() &&
      std::all_of(may_hold.begin(), may_hold.end(), [&out](const model::Thread* thread) {
        const model::Frame* frame = waits_for_native_pool(*thread);
        return thread->state != 'R' && frame != nullptr && model::pool_of(*frame)->name == out.pool;
      });
  if (!all || may_hold.empty()) {
    return std::nullopt;
  }
  const auto inner = std::find_if(
      may_hold.begin(), may_hold.end(),
      [&out](const model::Thread* thread) { return calls_from_pool(*thread, out.pool); });
  out.holder = inner == may_hold.end() ? may_hold.front() : *inner;
  out.only = may_hold.size() == 1;
  return out;
}

bool sleeps_in_kernel(const model::Thread& thread) {
  const auto named =
      std::find_if(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
        return !model::is_libc_code(frame) || !frame.function.empty();
      });
  if (named == thread.frames.end()) {
    return false;
  }
  const bool inner = named != thread.frames.begin();  // libc's wait, without a symbol, is inside
  return model::sleeps_in_libc(*named) ||
         (inner && model::is_libc_code(*named) && model::takes_mutex(named->function));
}

const model::Thread* holder_by_elimination(const model::Process& process) {
  const model::Thread* holder = nullptr;
  bool wanted = false;
  bool released = false;
  for (const model::Thread& thread : process.threads) {
    if (thread.frames.empty() && thread.state == 'S') {
      continue;  // listed as asleep, as the threads of pools are
    }
    if (thread.gil || thread.frames.empty() || !is_native_frame(thread.frames.front())) {
      return nullptr;
    }
    if (waits_for_gil(thread)) {
      wanted = true;
      continue;
    }
    if (!runs_python_code(thread) || waits_in_lock_of_python(thread)) {
      continue;
    }
    if (has_released_gil(thread)) {
      released = true;
      continue;
    }
    if (holder != nullptr) {
      return nullptr;
    }
    holder = &thread;
  }
  if (!wanted || holder == nullptr) {
    return nullptr;
  }
  // Beside a thread that may have taken the GIL again, a system call does not show a holder.
  const bool waits = released ? mutex_taker(*holder).has_value() : sleeps_in_kernel(*holder);
  return waits || callback_behind(process, *holder) != nullptr ? holder : nullptr;
}

}  // namespace ddpdoctor::detectors
