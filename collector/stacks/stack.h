// SPDX-License-Identifier: Apache-2.0
// A captured stack: values without behaviour. This folder knows pids, not jobs.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace ddpdoctor::stacks {

enum class Language { kPython, kNative };

/// The progress of a `for` loop, as far as its iterator shows it.
struct Iteration {
  std::string over;  // "DataLoader with DistributedSampler", "range", "generator f"
  std::optional<std::int64_t> done{};  // items returned so far, including the current one
  std::optional<std::int64_t> left{};  // remaining items
  bool loose = false;  // counted in a generator's own loop, which may yield fewer or more
  std::optional<std::int64_t>
      index{};  // index of enumerate(), including its start, if `done` is uncertain
  // What it goes over, in its order, if these are a few names or numbers; of pairs, the first.
  std::vector<std::string> items{};

  [[nodiscard]] std::optional<std::int64_t> total() const {
    return done && left ? std::optional(*done + *left) : std::nullopt;
  }
};

/// One frame of one thread. `function` is a qualified name (Python) or a demangled, shortened one
/// (native; empty = unknown).
struct Frame {
  Language language = Language::kNative;
  std::string function;
  /// Python: co_filename. Native: empty; but in a process without Python, the source file of user
  /// code from debug information or, with line 0, the code file itself.
  std::string file;
  int line = 0;    // 1-based; 0 = unknown
  int column = 0;  // 1-based, Python 3.11+; 0 = unknown
  int end_line = 0;
  int end_column = 0;
  std::string module;         // native: file name of the ELF object
  std::uint64_t address = 0;  // native: program counter
  bool inferred = false;      // depends on an inferred frame pointer
  bool of_backend = false;    // the program's communication backend, see model::mark_backends()
  /// Rendered arguments and locals; only for torch.distributed frames and listed waiting functions.
  std::vector<std::pair<std::string, std::string>> locals;
  /// Its current `for` loops, outermost first; if known, and only for Python code outside torch.
  std::vector<Iteration> loops;
};

/// How the registers and stack of a thread were read.
enum class CaptureMethod { kNone, kNoStop, kStopped };

/// The system call of a sleeping thread.
struct Syscall {
  std::int64_t number = -1;  // -1: none; the thread was running or in a page fault
  std::array<std::uint64_t, 6> arguments{};
};

/// A Python exception and where it was raised.
struct RaisedException {
  std::string type;  // "ValueError"
  std::string text;  // its str(), shortened; empty = none
  // Its traceback: the line that raised it first, the line that handles it last.
  std::vector<Frame> places;
};

/// One thread at one instant; frames innermost first.
struct ThreadStack {
  pid_t tid = 0;            // in our pid namespace
  pid_t inner_tid = 0;      // in the target's own pid namespace
  std::string name;         // the kernel's (comm)
  std::string python_name;  // name in threading.Thread, if readable
  char state = '?';         // R S D T t Z X
  std::string wchan;
  CaptureMethod method = CaptureMethod::kNone;
  double stopped_ms = 0;
  std::optional<Syscall> syscall;
  std::vector<Frame> frames;
  bool has_python = false;
  std::optional<RaisedException> handles;  // exception of its current except or finally block
  std::optional<bool> holds_gil;
  std::optional<std::uint64_t> mutex_address;  // the futex word it sleeps on
  std::optional<pid_t> mutex_owner;            // owner tid in the pthread mutex it waits for
  // Number of times on a CPU at capture: an equal number later means that it has not run.
  std::uint64_t run_count = 0;
  bool complete = false;  // unwound to the thread's start
  std::string problem;    // why the stack is absent, partial or unmerged; empty = no problem
};

/// A process group according to c10d's Python and C++ objects.
struct TorchGroup {
  std::string name;         // "0", "1", … as torch names it
  std::string description;  // "default_pg" or empty
  std::string backend;      // "gloo", "nccl"; empty = unknown
  std::vector<int> ranks;   // global ranks in group order; empty = unknown
};

struct PythonLocation {
  std::string file;
  int line = 0;
  std::string function;
};

/// One entry of torch's flight recorder, read from the target's memory.
struct FlightRecord {
  std::int64_t id = 0;
  // Number of the group in this process; with TORCH_DISTRIBUTED_DEBUG=DETAIL the name is empty.
  std::int64_t group_id = -1;
  std::string group_name;
  std::string group_description;
  std::int64_t sequence = 0;      // collective_seq_id or p2p_seq_id
  std::int64_t operation_id = 0;  // op_id
  bool point_to_point = false;
  std::string operation;  // "gloo:all_reduce" as recorded
  std::vector<std::vector<std::int64_t>> input_shapes;
  std::vector<std::vector<std::int64_t>> output_shapes;
  std::vector<std::string> input_dtypes;
  std::vector<std::string> output_dtypes;
  std::int64_t created_ns = 0;  // wall clock
  bool started = false;
  bool completed = false;             // or retired
  std::vector<PythonLocation> stack;  // Python frames of the call, innermost first; empty = unknown
};

/// The state of torch.distributed inside one process.
struct TorchState {
  std::string version;  // "2.13.0+cpu"; empty = unknown
  std::optional<int> rank;
  std::optional<int> world_size;
  std::vector<TorchGroup> groups;
  std::vector<FlightRecord> records;  // oldest first
  bool recorder_read = false;
  std::string problem;  // why the recorder was not read
};

struct PythonRuntime {
  std::string version;                             // "3.11"
  std::optional<pid_t> gil_holder;                 // tid; absent = none or unknown
  bool gil_moving = false;                         // changed during the capture
  std::map<std::string, std::string> environment;  // os.environ as Python sees it, if readable
  std::optional<RaisedException> printed;  // sys.last_value: the exception that ended the program
  std::optional<RaisedException> lost;     // of an asyncio task whose result was never retrieved
  std::string problem;
};

struct ProcessStacks {
  pid_t pid = 0;
  std::vector<ThreadStack> threads;
  std::optional<PythonRuntime> python;
  std::optional<TorchState> torch;
  std::vector<std::string> problems;  // what could not be read; sentences with reasons
  double longest_stop_ms = 0;
};

}  // namespace ddpdoctor::stacks
