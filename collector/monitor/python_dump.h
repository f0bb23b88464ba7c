// SPDX-License-Identifier: Apache-2.0
// The Python stacks of one process, or of it and all its descendants, without any diagnosis: like a
// plain stack dumper.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::monitor {

struct DumpedFrame {
  stacks::Frame frame;
  std::string module_path;  // for native frames: full path of the ELF object
  bool entry = false;       // the interpreter's loop was entered for this frame
};

/// A thread that runs Python; frames innermost first.
struct DumpedThread {
  pid_t tid = 0;
  std::uint64_t ident = 0;  // threading.get_ident(); 0 = unknown
  std::string name;         // the name in threading; empty = unknown
  bool active = false;      // running, or holding the GIL
  bool has_gil = false;
  std::vector<DumpedFrame> frames;
};

struct DumpedProcess {
  pid_t pid = 0;
  pid_t parent = 0;
  std::vector<std::string> command;
  std::string exe;
  std::string version;                // "3.11.7", or "3.11" if the rest is unknown
  std::vector<DumpedThread> threads;  // main thread first
};

struct DumpOptions {
  bool native = false;
  bool descendants = false;
  bool allow_stop = true;
};

/// The process first, then its descendants that run Python. Fails with the reason if the process
/// itself cannot be read or runs no Python.
base::Result<std::vector<DumpedProcess>> dump_python(pid_t pid, const DumpOptions& options);

}  // namespace ddpdoctor::monitor
