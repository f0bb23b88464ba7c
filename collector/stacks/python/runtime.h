// SPDX-License-Identifier: Apache-2.0
// The interpreter as a whole: the address of _PyRuntime, its version, interpreters, thread states
// and lock.
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

/// A CPython interpreter found in a process, with a known, plausible layout.
struct PythonHome {
  RemoteAddress runtime = 0;  // _PyRuntime
  PythonLayout layout;
  std::string version;  // "3.11"
  std::optional<std::pair<std::uint64_t, std::uint64_t>> hash_secret;
};

/// Searches _PyRuntime in libpython, then in the executable. If it returns nothing, `problem` has
/// the reason, or is empty if this is not Python.
std::optional<PythonHome> find_python(Target& target, std::string& problem);

/// The layout of the interpreter at `runtime`; `version_hint` (0x030b; 0 = unknown) is used if the
/// interpreter does not contain its own offsets. If it returns nothing, `problem` has the reason.
std::optional<PythonLayout> layout_of_runtime(RemoteMemory& memory, RemoteAddress runtime,
                                              std::int32_t version_hint, std::string& problem);

/// A thread state with the data to find its other names.
struct PythonThread {
  PythonThreadState state;
  std::uint64_t ident = 0;  // threading.get_ident()
};

/// Thread states of all interpreters, limited in number; inner_tid is 0 if the tid is unknown.
std::vector<PythonThread> python_threads(RemoteMemory& memory, const PythonHome& home);

/// The thread that holds the GIL (of the first interpreter whose GIL is locked).
std::optional<pid_t> python_gil_holder(RemoteMemory& memory, const PythonHome& home);

/// sys.modules of the main interpreter; 0 if unreadable.
RemoteAddress python_modules(RemoteMemory& memory, const PythonHome& home);

}  // namespace ddpdoctor::stacks
