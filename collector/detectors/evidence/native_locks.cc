// SPDX-License-Identifier: Apache-2.0
// Stacks do not show who holds a mutex. That a thread is inside code of the same class or library
// as the function that waits is a resemblance: findings that rest on it alone are possible.
#include "collector/detectors/evidence/native_locks.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/text.h"
#include "collector/model/native_code.h"

namespace ddpdoctor::detectors {
namespace {

using model::Frame;
using std::string_view;

/// A lock of Python's C interface that an extension takes; Python's own locks release the GIL.
bool is_lock_of_extension(const model::Thread& thread, std::size_t at) {
  constexpr std::array<string_view, 6> kPython = {"lock_",     "rlock_",  "acquire_timed",
                                                  "_PyImport", "import_", "PyThread_"};
  const auto& frames = thread.frames;
  while (at < frames.size() && frames[at].function.starts_with("PyThread_acquire_lock")) {
    ++at;
  }
  return at < frames.size() && frames[at].language == model::Language::kNative &&
         !frames[at].function.empty() && !model::is_interpreter_code(frames[at]) &&
         !base::begins_with_any(frames[at].function, kPython);
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
  return module.find(".so") != module.npos && !base::begins_with_any(module, kLarge);
}

bool is_folder_of_library(string_view folder) {
  constexpr std::array<string_view, 9> kSystem = {"sysdeps", "nptl", "malloc",  "Objects", "Python",
                                                  "Modules", "elf",  "Include", "libgcc"};
  return !folder.empty() && folder != "." && folder != ".." && !base::contains_any(folder, kSystem);
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
  return is_namespace || out == "std" || base::begins_with_any(out, kOthers) ? std::string() : out;
}

std::optional<std::size_t> mutex_taker(const model::Thread& thread) {
  bool locked = false;
  for (std::size_t i = 0; i < thread.frames.size(); ++i) {
    const Frame& frame = thread.frames[i];
    if (frame.language != model::Language::kNative) {
      return std::nullopt;
    }
    const bool lock =
        model::takes_mutex(frame.function) ||
        (frame.function.starts_with("PyThread_acquire_lock") && is_lock_of_extension(thread, i));
    locked = locked || lock;
    if (lock || model::surrounds_wait(frame.function)) {
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
  const bool in_c = a.find("::") == a.npos && b.find("::") == b.npos &&
                    !model::is_interpreter_code(one) && !model::is_interpreter_code(other);
  return in_c && ((is_small_library(one.module) && one.module == other.module) ||
                  (is_folder_of_library(folder_of(one.file)) && !model::is_libc_code(one) &&
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

std::string function_said(const Frame& frame) {
  const std::string plain = plain_function(frame.function);
  return plain.empty() ? std::string(frame.module.empty() ? "a library" : frame.module)
                       : base::elide(plain, 80);
}

std::vector<bool> repeated_stacks(const model::Process& process) {
  constexpr std::size_t kMostStacks = 400;
  std::set<std::string> seen;
  std::vector<bool> out;
  out.reserve(process.threads.size());
  for (const model::Thread& thread : process.threads) {
    std::string functions;
    for (const Frame& frame : thread.frames) {
      functions += frame.function + '\n';
    }
    out.push_back(seen.size() >= kMostStacks || !seen.insert(std::move(functions)).second);
  }
  return out;
}

}  // namespace ddpdoctor::detectors
