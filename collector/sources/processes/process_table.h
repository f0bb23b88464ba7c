// SPDX-License-Identifier: Apache-2.0
// /proc: from any pid of a job to the whole job, with the role of each process (launcher, rank,
// DataLoader worker).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::sources {

/// One process as /proc shows it.
struct ProcessRow {
  pid_t pid = 0;
  pid_t ppid = 0;
  std::string comm;
  char state = '?';
  std::string wchan;
  std::vector<std::string> command;
  std::string exe;
  double start_time = 0;  // seconds since the epoch
  std::uint64_t start_ticks = 0;
  double cpu_seconds = 0;
  // Bytes read and written since its start; absent: not readable.
  std::optional<std::int64_t> io_bytes;
  int threads = 0;
  unsigned uid = 0;
  std::map<std::string, std::string> environment;  // complete; filter before it leaves this machine
  std::string problem;  // why something is missing ("environ: permission denied")
  pid_t group = 0;      // process group
  pid_t session = 0;
  std::optional<int> exit_code;  // for a zombie: the wait status of waitpid
  bool kernel_thread = false;
  std::uint64_t arguments_at =
      0;                // address of argv: equal to the parent's = forked without exec; 0 = unknown
  pid_t inner_pid = 0;  // pid in the process's own pid namespace; 0 = not read
  bool complete =
      false;  // wchan, exe, environment and inner_pid were read (or refused: see problem)
};

/// Every visible process of this machine by pid, without environment, exe and wchan (see
/// `complete`).
using ProcessTable = std::map<pid_t, ProcessRow>;
ProcessTable read_process_table();

/// One row of the table; nothing if the process does not exist.
std::optional<ProcessRow> read_process(pid_t pid);

/// Parses the text of /proc/PID/stat; nothing if it is truncated or malformed. Fills pid, ppid,
/// comm, state, times, threads, ids.
std::optional<ProcessRow> parse_stat(std::string_view text);

/// Reads what the table omits: wchan, exe, environment, inner pid. `problem` holds the reason if
/// access is refused.
void complete(ProcessRow& row);

enum class JobRole { kLauncher, kRank, kDataLoaderWorker, kResourceTracker, kShmManager, kOther };

struct JobProcess {
  ProcessRow row;
  JobRole role = JobRole::kOther;
  std::optional<int> rank;  // for workers: the rank they serve
  // For mp.spawn children: start order, until their os.environ or torch gives the rank.
  std::optional<int> guessed_rank;
  bool role_guessed = false;  // from parentage only, without RANK in its initial environment
};

/// Part of the note that some ranks are not on this machine: "2 of 4 ranks run on this machine
/// (0-1); …".
inline constexpr std::string_view kRanksHere = " ranks run on this machine (";

/// The processes of one job: the launcher (or the outermost shell) first, parents before children.
struct JobTree {
  std::vector<JobProcess> processes;
  pid_t launcher = 0;
  pid_t named = 0;  // the process that was named
  std::optional<int> world_size;
  std::vector<std::string> notes;
  std::optional<int> local_world_size;  // number of ranks that the launcher starts on this machine
  std::optional<int> nodes;             // number of machines of the job
  std::vector<int> ranks_here;  // global ranks that should run on this machine; empty = unknown

  [[nodiscard]] const JobProcess* find(pid_t pid) const;
};

/// Finds the job around `pid`: up to its launcher, down to every worker; `whole_tree` false = this
/// process only.
base::Result<JobTree> find_job(pid_t pid, bool whole_tree);

/// The same for an existing process table (environments are completed on demand).
base::Result<JobTree> find_job(pid_t pid, bool whole_tree, ProcessTable table);

/// Corrects guessed roles and fills missing ranks from the stacks: os.environ, torch's own rank,
/// DataLoader's loop. Then records the ranks without a process.
void refine_roles(JobTree& job, const std::vector<stacks::ProcessStacks>& stacks);

}  // namespace ddpdoctor::sources
