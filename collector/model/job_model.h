// SPDX-License-Identifier: Apache-2.0
// Everything that is known about a job: values only. Attach, run and recordings all fill this
// struct, and detectors do not know where evidence came from. Mirrors ddpdoctor.capture/1. Absent
// means unknown, never false.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <sys/types.h>

#include "collector/model/collective.h"
#include "collector/model/rank_set.h"
#include "collector/program/source_text.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::model {

using stacks::Frame;
using stacks::Iteration;
using stacks::Language;

/// What a sleeping thread waits for: kind is mutex, gil, process, socket, fifo, pipe, file-lock,
/// store-key, import-lock, semaphore, stream, timer; target is "thread:123", "pid:77", "rank:2",
/// "file:/path", a key, or empty = unknown.
struct WaitsOn {
  std::string kind;
  std::string target;
  std::string detail;  // for people: path, address, key
  std::optional<double>
      limit{};  // seconds after which it ends by itself at the latest; none = no timeout
};

struct Thread {
  pid_t tid = 0;
  std::string name;
  char state = '?';
  std::string wchan;
  std::optional<bool> gil;
  std::optional<WaitsOn> waits_on;
  std::vector<Frame> frames;  // innermost first
  std::optional<std::uint64_t>
      run_count;  // number of times on a CPU; equal in two observations = it did not run in between
  std::string capture;  // "no stop", "stopped 0.1 ms", or why there is no stack
};

/// How a process ended: with a status or by a signal.
struct Exit {
  std::optional<int> status;
  std::optional<int> signal;
};

enum class Role { kRank, kLauncher, kDataLoaderWorker, kResourceTracker, kShmManager, kOther };

struct Process {
  std::string host;
  pid_t pid = 0;
  pid_t ppid = 0;
  std::optional<Rank> rank;
  Role role = Role::kOther;
  std::vector<std::string> command;
  std::string exe;
  std::optional<double> start_time;  // seconds since the epoch
  char state = '?';
  std::string wchan;
  std::map<std::string, std::string>
      environment;  // relevant variables (RANK, MASTER_*, NCCL_*, OMP_*, …)
  std::optional<Exit> exit;
  std::string python_version;
  std::vector<Thread> threads;  // main thread first
  std::vector<std::string> problems;
  std::optional<double> cpu_seconds;
  std::optional<std::int64_t> io_bytes;  // bytes read and written since its start
};

/// All processes at one instant.
struct Observation {
  double time = 0;  // seconds
  std::vector<Process> processes;
};

using FactValue = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>>;

/// A fact about the job that is neither a stack nor a collective: exit, fork, openmp-team,
/// cuda-context, shm-segment, shm-usage, fd-usage, file-lock, lock-file, listen, mount, gpu,
/// nccl-ras, kernel-log, library-version, … Fields of each kind: docs/capture.schema.json.
struct Fact {
  std::optional<Rank> rank;
  std::optional<pid_t> pid;
  std::string kind;
  std::map<std::string, FactValue> fields;
  bool told = false;  // a line of a log says it; neither ddpdoctor nor a tool saw it

  [[nodiscard]] std::optional<std::string> text(const std::string& field) const;
  [[nodiscard]] std::optional<double> number(const std::string& field) const;
  [[nodiscard]] std::optional<bool> flag(const std::string& field) const;
  /// Empty when absent.
  [[nodiscard]] std::vector<std::string> list(const std::string& field) const;
};

/// Text that a rank wrote (stderr), or a CI log (rank absent).
struct Log {
  std::optional<Rank> rank;
  std::string text;
};

/// The ranks and evidence that were observed, and what was lost.
struct Coverage {
  std::vector<std::string> observed;    // sentences: "stacks of 13 processes"
  std::vector<std::string> unobserved;  // sentences: "rank 3: permission denied"
  RankSet unobserved_ranks;
  std::uint64_t events_lost = 0;
  std::vector<std::string> warnings;
};

/// Whether anything changed between observations (or since the recorders' newest entries).
enum class Progress { kUnknown, kMoving, kStill };

struct JobModel {
  std::optional<int> world_size;
  std::vector<std::string> command;
  std::vector<std::string> hosts;
  std::optional<pid_t> launcher_pid;
  std::vector<ProcessGroup> groups;
  std::vector<Observation> observations;  // oldest first
  std::vector<CollectiveCall> collectives;
  std::vector<Fact> facts;
  std::map<std::string, program::SourceText> sources;
  /// Files of frameworks that are on the ranks' stacks. Apart from the user's: names in the user's
  /// code are looked up in `sources` alone.
  std::map<std::string, program::SourceText> framework_sources;
  std::vector<Log> logs;
  Coverage coverage;
  Progress progress = Progress::kUnknown;
  std::optional<double> seconds_without_progress;
  bool ended = false;  // the job has ended: the evidence is post-mortem
  bool history_complete =
      false;  // collectives hold every call since the start (an agent recorded them)
};

}  // namespace ddpdoctor::model
