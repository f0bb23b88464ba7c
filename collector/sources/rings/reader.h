// SPDX-License-Identifier: Apache-2.0
// Converts a ring to the events of its process. The bytes may come from a process that died during
// a write, or from an untrusted source: every index is checked; torn slots are counted and skipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::sources {

/// A Python frame of a recorded call.
struct RecordedFrame {
  std::string file{};
  int line = 0;
  std::string function{};
};

enum class RecordedState { kUnknown, kEnqueued, kStarted, kCompleted, kFailed };

/// One call of this rank. Ranks in it are group ranks.
struct RecordedCall {
  std::size_t group = 0;  // index into Recording::groups
  std::int64_t sequence = 0;
  bool point_to_point = false;
  std::string operation{};
  std::optional<std::int64_t> count{};
  std::optional<std::vector<std::int64_t>> shape{};
  std::optional<std::vector<std::int64_t>> input_splits{};
  std::optional<std::vector<std::int64_t>> output_splits{};
  std::string dtype{};
  std::string reduce_op{};
  std::optional<int> peer{};  // root of a collective, peer of send and recv
  std::optional<int> tag{};   // for messages of MPI
  bool asynchronous = false;
  std::uint64_t stream = 0;  // GPU stream in which the call waits for earlier ones
  bool on_stream = false;
  bool grouped = false;      // launched together with others
  bool in_progress = false;  // NCCL has not yet reported the result
  RecordedState state = RecordedState::kEnqueued;
  pid_t thread = 0;                    // the calling thread
  double time = 0;                     // time of enqueueing, seconds since the epoch
  std::optional<double> end_time{};    // time of completion or failure, seconds since the epoch
  std::vector<RecordedFrame> stack{};  // innermost first
};

struct RecordedGroup {
  std::string name{};  // empty = unknown
  std::string backend{};
  std::optional<int> group_rank{};
  std::optional<int> size{};
  std::int64_t enqueued = 0;
  std::int64_t completed = 0;
  std::int64_t failed = 0;
  std::int64_t point_to_point = 0;
  pid_t asked_by = 0;  // the thread that polls NCCL for the state of its own call; 0 = none
  double asked = 0;    // when NCCL last answered it "in progress", seconds since the epoch
};

struct RecordedParameter {
  std::int64_t index = 0;
  std::string name{};
};

/// A DDP reducer, and the parameters missing in its newest backward pass.
struct RecordedReducer {
  std::int64_t parameters = 0;
  std::int64_t generation = 0;  // backward passes begun
  std::int64_t finalized = 0;
  std::int64_t forwards = 0;
  std::int64_t ready = 0;  // number of parameters that are ready in the newest one
  bool find_unused = false;
  bool static_graph = false;
  std::vector<RecordedParameter> not_ready{};
  double last_time = 0;
  std::vector<RecordedFrame> stack{};
};

/// Anything else that happened.
struct RecordedEvent {
  std::string kind{};  // "store", "fork", "child-exit", "signal-sent", "team", "shm-open",
                       // "shm-unlink", "shm-size", "exit", "cuda-context", "cuda-after-fork",
                       // "descriptors-full", "no-space", "wait-end", "gpu-window", "gpu-kernel"
                       // (state unknown where ends are not told), "gpu-wait" of a thread,
                       // "gpu-behind" of a stream; what their numbers mean: wire/events.h
  RecordedState state = RecordedState::kEnqueued;
  double time = 0;
  std::int64_t count = -1;
  std::int64_t peer = -1;
  std::uint32_t detail = 0;
  std::uint64_t object = 0;  // for gpu events: a stream or an event
  std::string text{};
  std::vector<RecordedFrame> stack{};
};

struct RecordedSegment {
  std::string name{};
  std::int64_t bytes = 0;
  bool created = true;  // by this process
  bool mapped = false;  // by this process, while the segment had a name
  bool unlinked = false;
};

/// A thread that waited in libc when the ring was read. A cancelled thread stays listed.
struct RecordedWait {
  pid_t tid = 0;
  std::string what{};  // "pthread barrier", "semaphore"
  std::uint64_t object = 0;
  double since = 0;  // seconds since the epoch
};

/// How the process announced its end.
struct RecordedExit {
  std::string kind{};  // "exit", "_exit", "abort", "exec"
  int value = 0;
  double time = 0;
  std::vector<RecordedFrame> stack{};
};

struct Recording {
  pid_t pid = 0;
  pid_t ppid = 0;
  std::uint64_t start_ticks = 0;
  std::optional<int> rank{};
  std::optional<int> world_size{};
  std::string torch_version{};
  std::string python_version{};
  std::string command{};
  bool forked = false;
  std::optional<pid_t>
      parent_team{};  // the ancestor with OpenMP or BLAS threads at the time of the fork
  std::uint32_t cuda_devices = 0;  // bit per device that it started CUDA on
  std::vector<RecordedGroup> groups{};
  std::vector<RecordedCall> calls{};  // oldest first, newest state of each
  std::vector<RecordedReducer> reducers{};
  std::vector<RecordedEvent> events{};
  std::vector<RecordedSegment> segments{};
  std::vector<RecordedWait> waits{};
  std::optional<RecordedExit> exit{};
  std::string standard_error{};  // the last part
  /// Seconds since the epoch of the GPU driver's last answer to the agent; nothing if it was never
  /// polled.
  std::optional<double> driver_answered{};
  std::uint64_t lost = 0;
  std::uint64_t torn = 0;   // slots with an incomplete write
  bool wrapped = false;     // older slots were overwritten
  bool superseded = false;  // a later process became this rank: generations.h
  bool one_device = false;  // the part of one device of the process: model/building/devices.h
  std::vector<pid_t> threads_of_others{};  // if so: threads that call for other devices
  std::vector<std::string> notes{};
};

/// Reads one ring; `name` is the file for messages.
base::Result<Recording> read_ring(std::span<const std::byte> bytes, const std::string& name);

/// Every ring of a spool folder, ordered by file name. A bad file among good ones becomes a
/// sentence in `problems`.
base::Result<std::vector<Recording>> read_spool(const std::string& folder,
                                                std::vector<std::string>& problems);

}  // namespace ddpdoctor::sources
