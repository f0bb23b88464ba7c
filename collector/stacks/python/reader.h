// SPDX-License-Identifier: Apache-2.0
// The CPython interpreter inside a target: its threads and their frames. Reading has two steps, so
// that the part that races with the target is short: read_stack copies raw addresses during the
// capture, decode resolves names afterwards (code objects do not change).
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

/// A thread state of the interpreter.
struct PythonThreadState {
  RemoteAddress address = 0;  // PyThreadState
  pid_t inner_tid = 0;        // tid in the target's pid namespace
  std::uint64_t ident = 0;    // threading.get_ident()
};

/// One raw frame: what must be copied while the thread does not run.
struct RawPythonFrame {
  RemoteAddress address = 0;
  RemoteAddress code = 0;
  std::uint64_t instruction = 0;  // f_lasti or prev_instr, depending on the version
  bool entry = false;             // 3.11: is_entry
  bool shim = false;              // 3.12+: the entry shim on the C stack
  RemoteAddress loop =
      0;  // 3.10, 3.11, for entry frames: the evaluation loop's CFrame on the C stack
};
using RawPythonStack = std::vector<RawPythonFrame>;  // innermost first

/// A decoded frame with the data needed for merging.
struct PythonFrame {
  RawPythonFrame raw;
  Frame frame;
};

/// True if the frames inside a loop's frame, innermost first, show a DataLoader in the middle of a
/// batch: its sampler is ahead of the batches it has returned.
bool draws_a_batch(const std::vector<PythonFrame>& inner);

/// run_until_complete of an asyncio loop: its caller waits for the main task.
bool runs_event_loop(const Frame& frame);

class PythonReader {
 public:
  virtual ~PythonReader() = default;
  /// "3.11"
  [[nodiscard]] virtual std::string version() const = 0;
  virtual std::vector<PythonThreadState> thread_states() = 0;
  virtual RawPythonStack read_stack(RemoteAddress thread_state) = 0;
  virtual std::vector<PythonFrame> decode(const RawPythonStack& stack) = 0;
  /// A position in a code object without a running frame, as stored in torch's flight recorder:
  /// `lasti` counts bytecode bytes in every version (PyFrame_GetLasti). No locals.
  virtual std::optional<Frame> decode_code(RemoteAddress /*code*/, int /*lasti*/) {
    return std::nullopt;
  }
  /// The exception of a thread's current except or finally block; 0 = none or unknown.
  virtual RemoteAddress handled_exception(RemoteAddress /*thread_state*/) {
    return 0;
  }
  /// sys.last_value; 0 = none.
  virtual RemoteAddress printed_exception() {
    return 0;
  }
  /// Nothing if there is no exception at that address (any more).
  virtual std::optional<RaisedException> decode_exception(RemoteAddress /*exception*/) {
    return std::nullopt;
  }
  /// For a thread that waits in asyncio's event loop: the coroutines in which the loop's main task
  /// waits, innermost first. Empty for other threads.
  virtual std::vector<Frame> awaiting(const RawPythonStack& /*stack*/) {
    return {};
  }
  /// The exception of a finished asyncio task whose result was never retrieved; 0 = none.
  virtual RemoteAddress lost_exception() {
    return 0;
  }
  /// Inner tid of the thread that holds the GIL; nothing if it is free or unreadable.
  virtual std::optional<pid_t> gil_holder() = 0;
  /// threading.Thread names by inner tid, as far as readable.
  virtual std::vector<std::pair<pid_t, std::string>> thread_names() = 0;
  /// os.environ as Python sees it (with variables set after exec); only the variables that describe
  /// a job.
  virtual std::map<std::string, std::string> environment() = 0;
  /// The interpreter's objects; valid as long as the reader.
  virtual PythonObjects& objects() = 0;
};

/// Finds the interpreter by its _PyRuntime. Nothing if the process is not a known CPython:
/// `problem` then has the reason, or is empty if it is not Python at all.
std::unique_ptr<PythonReader> open_python(Target& target, std::string& problem);

/// A native frame with the data needed for merging.
struct NativeFrame {
  Frame frame;
  RemoteAddress cfa = 0;  // canonical frame address; 0 = unknown
};

/// Merges both stacks, innermost first: Python frames replace the evaluation-loop frames that run
/// them. If the counts do not match, both parts are kept (Python first, then native) and `problem`
/// says so; nothing is guessed.
std::vector<Frame> merge(const std::vector<NativeFrame>& native, RemoteAddress stack_pointer,
                         const std::vector<PythonFrame>& python, const std::string& version,
                         std::string& problem);

}  // namespace ddpdoctor::stacks
