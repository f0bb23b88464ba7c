// SPDX-License-Identifier: Apache-2.0
// The interpreter as a whole: where _PyRuntime lies, which version it is, its interpreters, thread
// states and lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/stacks/python/offsets.h"
#include "collector/stacks/python/reader.h"
#include "collector/stacks/target/remote_memory.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// A CPython found in a process, its layout known and found plausible.
struct PythonHome {
  RemoteAddress runtime = 0;  // _PyRuntime
  PythonLayout layout;
  std::string version;  // "3.11"
  std::optional<std::pair<std::uint64_t, std::uint64_t>> hash_secret;
};

/// Looks for _PyRuntime in libpython, then in the executable. Nothing: `problem` says why, or is
/// empty when this is no Python.
std::optional<PythonHome> find_python(Target& target, std::string& problem);

/// The layout of the interpreter at `runtime`; `version_hint` (0x030b; 0 = unknown) is used where
/// the interpreter does not carry its own offsets. Nothing: `problem` says why.
std::optional<PythonLayout> layout_of_runtime(RemoteMemory& memory, RemoteAddress runtime,
                                              std::int32_t version_hint, std::string& problem);

/// A thread state with what finds its other names.
struct PythonThread {
  PythonThreadState state;
  std::uint64_t ident = 0;  // threading.get_ident()
};

/// Thread states of all interpreters, bounded; those whose tid cannot be told have inner_tid 0.
std::vector<PythonThread> python_threads(RemoteMemory& memory, const PythonHome& home);

/// The thread that holds the GIL now (of the first interpreter whose GIL is locked).
std::optional<pid_t> python_gil_holder(RemoteMemory& memory, const PythonHome& home);

/// sys.modules of the main interpreter; 0 when unreadable.
RemoteAddress python_modules(RemoteMemory& memory, const PythonHome& home);

}  // namespace ddpdoctor::stacks
