// SPDX-License-Identifier: Apache-2.0
// Stacks do not show who holds a mutex. That a thread is inside code of the same class or library
// as the function that waits is a resemblance: findings that rest on it alone are possible.
#include "collector/detectors/evidence/native_locks.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/text.h"
#include "collector/detectors/evidence/signs.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using std::string_view;

bool contains_one_of(string_view text, std::span<const string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](string_view part) { return text.find(part) != string_view::npos; });
}

bool begins_with_one_of(string_view text, std::span<const string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [text](string_view part) { return text.starts_with(part); });
}

/// Functions in which a thread waits for a mutex: of glibc, macOS, C++, abseil (gRPC), nsync
/// (TensorFlow), jemalloc and Rust.
bool locks(string_view function) {
  constexpr std::array<string_view, 17> kLocks = {
      "lll_lock_wait",       "pthread_mutex_lock",    "pthread_mutex_timedlock",
      "pthread_mutex_clock", "pthread_rwlock_rdlock", "pthread_rwlock_wrlock",
      "__psynch_mutexwait",  "mutex_firstfit_lock",   "gthread_mutex_lock",
      "std::mutex::lock",    "mutex_lock_slow",       "absl::Mutex::Lock",
      "gpr_mu_lock",         "nsync_mu_lock",         "recursive_mutex::lock",
      "RawMutex::lock_slow", "Mutex::lock_contended"};
  return contains_one_of(function, kLocks);
}

/// A lock of Python's C interface that an extension takes; Python's own locks release the GIL.
bool is_lock_of_extension(const model::Thread& thread, std::size_t at) {
  constexpr std::array<string_view, 6> kPython = {"lock_",     "rlock_",  "acquire_timed",
                                                  "_PyImport", "import_", "PyThread_"};
  const auto& frames = thread.frames;
  while (at < frames.size() && frames[at].function.starts_with("PyThread_acquire_lock")) {
    ++at;
  }
  return at < frames.size() && frames[at].language == model::Language::kNative &&
         !frames[at].function.empty() && !is_of_python(frames[at]) &&
         !begins_with_one_of(frames[at].function, kPython);
}

/// Around the lock: system calls, and templates of C++ that hold it.
bool surrounds_lock(string_view function) {
  constexpr std::array<string_view, 18> kAround = {
      "futex",
      "syscall",
      "std::lock_guard",
      "std::unique_lock",
      "std::scoped_lock",
      "std::shared_lock",
      "std::__mutex",
      "std::shared_timed_mutex",
      "std::shared_mutex",
      "mutex_lock",
      "mutex::lock",
      "MutexLock",
      "sem_wait",
      "std::lock",
      "absl::Mutex",
      "absl::synchronization_internal",
      "AbslInternalPerThreadSem",
      "pthread_cond"};  // Python's locks, and a condition that takes its mutex again
  return function.empty() || contains_one_of(function, kAround);
}

/// The part of a name before its arguments: "(anonymous namespace)" and "operator()" belong to it.
string_view before_arguments(string_view name) {
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (name[i] == '(' && depth <= 0) {
      const string_view rest = name.substr(i);
      if (rest.starts_with("(anonymous namespace)")) {
        i += string_view("(anonymous namespace)").size() - 1;
      } else if (!name.substr(0, i).ends_with("operator")) {
        return name.substr(0, i);
      }
    }
  }
  return name;
}

string_view folder_of(string_view file) {
  const std::size_t slash = file.rfind('/');
  return slash == file.npos ? string_view() : file.substr(0, slash);
}

/// Of a library with one lock, or few: not libc, the interpreter, the C++ runtime or torch, whose
/// parts have nothing to do with each other.
bool is_small_library(string_view module) {
  constexpr std::array<string_view, 14> kLarge = {
      "libc.so",   "libc-2",   "libpthread", "ld-linux", "ld-2",   "libpython", "python",
      "libstdc++", "libgcc_s", "libtorch",   "libc10",   "libffi", "libdl",     "libm.so"};
  return module.find(".so") != module.npos && !begins_with_one_of(module, kLarge);
}

bool is_folder_of_library(string_view folder) {
  constexpr std::array<string_view, 9> kSystem = {"sysdeps", "nptl", "malloc",  "Objects", "Python",
                                                  "Modules", "elf",  "Include", "libgcc"};
  return !folder.empty() && folder != "." && folder != ".." && !contains_one_of(folder, kSystem);
}

bool is_libc_code(const Frame& frame) {
  constexpr std::array<string_view, 5> kModules = {"libc.so", "libc-2", "libpthread", "ld-linux",
                                                   "ld-2"};
  return begins_with_one_of(frame.module, kModules);
}

}  // namespace

std::string plain_function(string_view function) {
  std::string out;
  int depth = 0;
  for (const char letter : before_arguments(function)) {
    depth += letter == '<' ? 1 : 0;
    if (depth == 0) {
      out += letter;
    }
    depth -= letter == '>' && depth > 0 ? 1 : 0;
  }
  constexpr string_view kNameless = "(anonymous namespace)";
  const std::size_t space = out.rfind(' ');
  if (space != out.npos && out.find(kNameless) == out.npos) {
    out.erase(0, space + 1);  // the type of the result
  }
  return out;
}

std::string class_of(string_view function) {
  const std::string plain = plain_function(function);
  const std::size_t end = plain.rfind("::");
  const bool lambda = function.find("{lambda") != function.npos ||
                      function.find("'lambda") != function.npos ||
                      plain.find("operator()") != plain.npos;
  if (end == plain.npos || lambda) {
    return {};
  }
  constexpr std::array<string_view, 4> kOthers = {"std::", "pybind11::", "__gnu_cxx::", "boost::"};
  std::string out = plain.substr(0, end);
  // A namespace alone is not an object: "at::empty" and "at::add" have no lock in common.
  const bool is_namespace = out.find("::") == out.npos && !out.empty() && out[0] >= 'a';
  return is_namespace || out == "std" || begins_with_one_of(out, kOthers) ? std::string() : out;
}

std::optional<std::size_t> mutex_taker(const model::Thread& thread) {
  bool locked = false;
  for (std::size_t i = 0; i < thread.frames.size(); ++i) {
    const Frame& frame = thread.frames[i];
    if (frame.language != model::Language::kNative) {
      return std::nullopt;
    }
    const bool lock =
        locks(frame.function) ||
        (frame.function.starts_with("PyThread_acquire_lock") && is_lock_of_extension(thread, i));
    locked = locked || lock;
    if (lock || surrounds_lock(frame.function)) {
      continue;
    }
    return locked ? std::optional(i) : std::nullopt;
  }
  return std::nullopt;
}

bool is_same_code(const Frame& one, const Frame& other) {
  if (one.language != model::Language::kNative || other.language != model::Language::kNative) {
    return false;
  }
  const std::string a = plain_function(one.function);
  const std::string b = plain_function(other.function);
  const bool modules = one.module.empty() || other.module.empty() || one.module == other.module;
  if (!a.empty() && a == b && modules) {
    return true;
  }
  const std::string of_a = class_of(one.function);
  if (!of_a.empty()) {
    return of_a == class_of(other.function);
  }
  const bool in_c = a.find("::") == a.npos && b.find("::") == b.npos && !is_of_python(one) &&
                    !is_of_python(other);
  return in_c && ((is_small_library(one.module) && one.module == other.module) ||
                  (is_folder_of_library(folder_of(one.file)) && !is_libc_code(one) &&
                   folder_of(one.file) == folder_of(other.file)));
}

const Frame* frame_in_code_of(const Frame& taker, const model::Thread& thread, std::size_t from) {
  for (std::size_t i = from; i < thread.frames.size(); ++i) {
    if (is_same_code(taker, thread.frames[i])) {
      return &thread.frames[i];
    }
  }
  return nullptr;
}

bool may_hold_mutex_of(const Frame& taker, const model::Thread& thread) {
  const auto waits = mutex_taker(thread);
  return !(waits && is_same_code(thread.frames[*waits], taker)) &&
         frame_in_code_of(taker, thread, 0) != nullptr;
}

bool is_of_python(const Frame& frame) {
  constexpr std::array<string_view, 12> kBeginnings = {
      "Py",          "_Py",        "cfunction_",    "method_vectorcall",
      "t_bootstrap", "thread_run", "subtype_",      "builtin_",
      "object_",     "slot_tp",    "call_function", "pythread_wrapper"};
  return frame.language == model::Language::kPython ||
         (begins_with_one_of(frame.function, kBeginnings) &&
          frame.function.find("::") == std::string::npos);
}

std::string function_said(const Frame& frame) {
  const std::string plain = plain_function(frame.function);
  return plain.empty() ? std::string(frame.module.empty() ? "a library" : frame.module)
                       : base::elide(plain, 80);
}

}  // namespace ddpdoctor::detectors
