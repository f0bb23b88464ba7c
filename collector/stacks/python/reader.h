// SPDX-License-Identifier: Apache-2.0
// The CPython interpreter inside a target: its threads and their frames. Split in two so that the
// part that races with the target is short: read_stack copies raw addresses inside the capture
// window, decode turns them into names afterwards (code objects do not change).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collector/stacks/python/objects.h"
#include "collector/stacks/stack.h"
#include "collector/stacks/target/target.h"

namespace ddpdoctor::stacks {

/// A thread the interpreter knows.
struct PythonThreadState {
  RemoteAddress address = 0;  // PyThreadState
  pid_t inner_tid = 0;        // tid in the target's pid namespace
  std::uint64_t ident = 0;    // threading.get_ident()
};

/// One raw frame: what must be copied while the thread stands still.
struct RawPythonFrame {
  RemoteAddress address = 0;
  RemoteAddress code = 0;
  std::uint64_t instruction = 0;  // f_lasti or prev_instr, as the version has it
  bool entry = false;             // 3.11: is_entry
  bool shim = false;              // 3.12+: the entry shim that lies on the C stack
  RemoteAddress loop =
      0;  // 3.10, 3.11, of entry frames: the evaluation loop's CFrame on the C stack
};
using RawPythonStack = std::vector<RawPythonFrame>;  // innermost first

/// A decoded frame, still with what merging needs.
struct PythonFrame {
  RawPythonFrame raw;
  Frame frame;
};

/// Where the frames inside of a loop's frame, innermost first, show a DataLoader in the middle of a
/// batch: it has drawn from its sampler what it has not given out yet.
bool draws_a_batch(const std::vector<PythonFrame>& inner);

/// run_until_complete of asyncio's loop: its caller waits for the main task.
bool runs_event_loop(const Frame& frame);

class PythonReader {
 public:
  virtual ~PythonReader() = default;
  /// "3.11"
  [[nodiscard]] virtual std::string version() const = 0;
  virtual std::vector<PythonThreadState> thread_states() = 0;
  virtual RawPythonStack read_stack(RemoteAddress thread_state) = 0;
  virtual std::vector<PythonFrame> decode(const RawPythonStack& stack) = 0;
  /// A place in a code object without a running frame, as torch's flight recorder keeps it: `lasti`
  /// counts bytes of bytecode in every version (PyFrame_GetLasti). No locals.
  virtual std::optional<Frame> decode_code(RemoteAddress /*code*/, int /*lasti*/) {
    return std::nullopt;
  }
  /// The exception object that a thread is in an except or finally block for; 0 = none or unknown.
  virtual RemoteAddress handled_exception(RemoteAddress /*thread_state*/) {
    return 0;
  }
  /// sys.last_value; 0 = none.
  virtual RemoteAddress printed_exception() {
    return 0;
  }
  /// Nothing when there is no exception at that address (any more).
  virtual std::optional<RaisedException> decode_exception(RemoteAddress /*exception*/) {
    return std::nullopt;
  }
  /// A thread that waits in asyncio's event loop: the coroutines in which the loop's main task
  /// waits, innermost first. Empty for other threads.
  virtual std::vector<Frame> awaiting(const RawPythonStack& /*stack*/) {
    return {};
  }
  /// The exception of a finished asyncio task that nobody has asked for its result; 0 = none.
  virtual RemoteAddress lost_exception() {
    return 0;
  }
  /// Inner tid of the thread that holds the GIL now; nothing when nobody does or it cannot be read.
  virtual std::optional<pid_t> gil_holder() = 0;
  /// threading.Thread names by inner tid, as far as readable.
  virtual std::vector<std::pair<pid_t, std::string>> thread_names() = 0;
  /// os.environ as Python sees it (variables set after exec), only the keys a job is described by.
  virtual std::map<std::string, std::string> environment() = 0;
  /// The interpreter's objects; valid as long as the reader.
  virtual PythonObjects& objects() = 0;
};

/// Finds the interpreter by its _PyRuntime; nothing when the process is no (known) CPython:
/// `problem` then says why, or stays empty when it is no Python at all.
std::unique_ptr<PythonReader> open_python(Target& target, std::string& problem);

/// A native frame with what merging needs, innermost first.
struct NativeFrame {
  Frame frame;
  RemoteAddress cfa = 0;  // canonical frame address; 0 = unknown
};

/// One stack of both kinds, innermost first: evaluation-loop frames are replaced by the Python
/// frames they run. When the counts do not agree both parts are kept (Python first, then native)
/// and `problem` says so. Never a guess.
std::vector<Frame> merge(const std::vector<NativeFrame>& native, RemoteAddress stack_pointer,
                         const std::vector<PythonFrame>& python, const std::string& version,
                         std::string& problem);

}  // namespace ddpdoctor::stacks
