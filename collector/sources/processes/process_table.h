// SPDX-License-Identifier: Apache-2.0
// /proc: from any pid of a job to the whole job. Who is launcher, rank, DataLoader worker; what
// each process looks like.
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

/// One process as /proc tells it.
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
  std::optional<std::int64_t> io_bytes;  // read and written since its start; absent: not readable
  int threads = 0;
  unsigned uid = 0;
  std::map<std::string, std::string> environment;  // complete; filter before it leaves this machine
  std::string problem;  // why something is missing ("environ: permission denied")
  pid_t group = 0;      // process group
  pid_t session = 0;
  std::optional<int> exit_code;  // of a zombie: the wait status, as waitpid gives it
  bool kernel_thread = false;
  std::uint64_t arguments_at =
      0;                // address of argv: equal to the parent's = forked without exec; 0 = unknown
  pid_t inner_pid = 0;  // pid in the process's own pid namespace; 0 = not read
  bool complete =
      false;  // wchan, exe, environment and inner_pid were read (or refused: see problem)
};

/// Every process of this machine that we may see, by pid; without environment, exe and wchan (see
/// `complete`).
using ProcessTable = std::map<pid_t, ProcessRow>;
ProcessTable read_process_table();

/// One row of the table; nothing when there is no such process.
std::optional<ProcessRow> read_process(pid_t pid);

/// The text of /proc/PID/stat; nothing when it is cut or foreign. Fills pid, ppid, comm, state,
/// times, threads, ids.
std::optional<ProcessRow> parse_stat(std::string_view text);

/// Reads what the table leaves out: wchan, exe, environment, inner pid. Refusals end in `problem`.
void complete(ProcessRow& row);

enum class JobRole { kLauncher, kRank, kDataLoaderWorker, kResourceTracker, kShmManager, kOther };

struct JobProcess {
  ProcessRow row;
  JobRole role = JobRole::kOther;
  std::optional<int> rank;          // for workers: the rank they serve
  std::optional<int> guessed_rank;  // mp.spawn children: order of start, until their os.environ or
                                    // torch says better
  bool role_guessed =
      false;  // from parentage alone, no RANK in the environment it was started with
};

/// Of the note that not all ranks are on this machine: "2 of 4 ranks run on this machine (0-1); …".
inline constexpr std::string_view kRanksHere = " ranks run on this machine (";

/// The processes of one job, the launcher (or outermost shell of it) first, parents before
/// children.
struct JobTree {
  std::vector<JobProcess> processes;
  pid_t launcher = 0;
  pid_t named = 0;  // the process that was asked for
  std::optional<int> world_size;
  std::vector<std::string> notes;
  std::optional<int> local_world_size;  // ranks that the launcher starts on this machine
  std::optional<int> nodes;             // machines of the job
  std::vector<int> ranks_here;  // global ranks that should run on this machine; empty = unknown

  [[nodiscard]] const JobProcess* find(pid_t pid) const;
};

/// Finds the job around `pid`: up to its launcher, down to every worker; `whole_tree` false = this
/// process only.
base::Result<JobTree> find_job(pid_t pid, bool whole_tree);

/// The same over a table that was read before (environments are completed on the way).
base::Result<JobTree> find_job(pid_t pid, bool whole_tree, ProcessTable table);

/// Corrects guessed roles and fills missing ranks from what the stacks show: os.environ, torch's
/// own rank, DataLoader's loop. Notes the ranks that have no process then.
void refine_roles(JobTree& job, const std::vector<stacks::ProcessStacks>& stacks);

}  // namespace ddpdoctor::sources
