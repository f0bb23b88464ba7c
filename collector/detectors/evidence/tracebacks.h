// SPDX-License-Identifier: Apache-2.0
// The output of ranks: the rank of each line (torchrun mixes them into one stream), and the
// tracebacks with the user's line in each.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/detectors/evidence/remote_tracebacks.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/model/job_model.h"

namespace ddpdoctor::detectors {

/// One line of a log without its rank prefix. `text` points into the JobModel.
struct LogLine {
  std::string_view text;
  std::optional<model::Rank> rank;
  std::optional<double> time;  // of this line, or of the last earlier line with a time
  std::size_t log = 0;         // index in JobModel::logs
  std::size_t number = 0;      // line of the log, from 1
  std::string_view whom = {};  // as model::LogLine
};

/// The lines of one rank, or of one log in which ranks cannot be distinguished.
using LogStream = std::vector<LogLine>;

/// Every log as streams, separated by the rank prefix of each line (model/log_lines.h). Only the
/// end of a very long log is read, because it contains the cause of a crash.
std::vector<LogStream> log_streams(const model::JobModel& job);

/// The user's line nearest above `index`, within its traceback.
model::CallSite user_place_above(const LogStream& stream, std::size_t index);
/// The user's innermost line in the traceback that begins below `index` ("Original Traceback").
model::CallSite user_place_below(const LogStream& stream, std::size_t index);

/// An exception that ended in a traceback.
struct Traceback {
  std::optional<model::Rank> rank;
  bool by_elimination = false;  // no label names the rank: all others were waiting
  std::optional<double> time;   // as LogLine
  std::size_t log = 0;
  std::size_t number = 0;
  model::CallSite place;                  // the user's innermost line; unknown if there is none
  std::vector<model::CallSite> frames{};  // the user's frames, innermost first
  std::string exception;                  // "ValueError: no such shard"
  bool of_thread = false;                 // ended a thread, not the program
  bool of_batch = false;           // raised while the rank fetched a batch from a DataLoader worker
  bool of_child = false;           // raised in a process that its parent forked
  bool ignored = false;            // raised in __del__ or atexit: Python continued
  bool of_launcher = false;        // raised by the launcher, after one of its ranks had failed
  std::optional<Remote> remote{};  // raised in that process; `place` is a line that it ran
  bool of_process = false;         // raised in a process that multiprocessing started
  bool of_cleanup = false;         // raised below a library's shutdown() or close()
  bool waits_for_children = false;  // raised in the join of processes that it had started
  // Raised in a call of torch.distributed, after this rank's watchdog had aborted the communicator:
  // calls fail then, or return without having filled their buffers.
  bool after_timeout = false;
  // At whose entry this rank waited: HF's main_process_first, accelerate's _goes_first,
  // ultralytics' torch_distributed_zero_first, or one whose entry calls torch's barrier.
  AwaitedContext awaited{};
  std::string writer{};      // "EngineCore_DP0 (pid 412)", from the label of its lines
  model::CallSite raiser{};  // the innermost frame, the user's or a library's
  std::string source{};      // its source line
};

/// The function that raised the first one also caught it and raises the second by a statement of
/// its own. Python before 3.8 shows the last line of that statement, often a string.
bool rewords(const Traceback& first, const Traceback& second);

/// torch's spawn raised it where it joins its processes: one of them failed.
bool joins_processes(const Traceback& traceback);

/// A spawned child ran the program again and started processes in its turn: the code that starts
/// them is not below `if __name__ == "__main__"`.
bool starts_without_guard(const Traceback& traceback);
inline constexpr std::string_view kGuardFix =
    "Put the code that starts processes below `if __name__ == \"__main__\":`. A child started by "
    "spawn or forkserver imports this file again.";

/// True if another failure is its cause: the message says so, or the place that raised.
bool is_consequence(const Traceback& traceback);

/// Those of ranks and other processes of the job, not of its launcher.
std::vector<Traceback> tracebacks(const model::JobModel& job);

/// Those of launchers that failed themselves: not because of one of their ranks or of a signal.
std::vector<Traceback> tracebacks_of_launchers(const model::JobModel& job);

/// True if `a` was certainly written before `b`: by their times, or by their lines in one log.
bool earlier(const Traceback& a, const Traceback& b);

/// All stacks that are known are of Ctrl-C: their processes waited until a person ended them.
bool was_interrupted(const model::JobModel& job);

/// Another rank certainly raised earlier at another line: this exception may be a consequence.
bool raised_before(const std::vector<Traceback>& all, const Traceback& traceback);

/// These frames are further on in a function through which the exception went: it led there.
bool is_behind(const Traceback& traceback, const std::vector<model::CallSite>& callers);

/// Removes those that follow from another one in the list: a library ended something after a
/// failure, and that failed, too; the message only says that the cause is printed above; or another
/// traceback of the same exception leads further inside.
void drop_echoes(std::vector<Traceback>& all);

/// The rank printed its own exception and has been in a `finally` of its own code since.
bool cleans_up_after_exception(const model::JobModel& job, model::Rank rank,
                               const std::vector<model::CallSite>& callers);

}  // namespace ddpdoctor::detectors
