// SPDX-License-Identifier: Apache-2.0
// /proc: from any pid of a job to the whole job. Who is launcher, rank, DataLoader worker; what each process looks like.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/result.h"

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
  double start_time = 0;    // seconds since the epoch
  std::uint64_t start_ticks = 0;
  double cpu_seconds = 0;
  int threads = 0;
  unsigned uid = 0;
  std::map<std::string, std::string> environment;  // complete; filter before it leaves this machine
  std::string problem;      // why something is missing ("environ: permission denied")
};

/// Every process of this machine that we may see, by pid.
using ProcessTable = std::map<pid_t, ProcessRow>;
ProcessTable read_process_table();

enum class JobRole { kLauncher, kRank, kDataLoaderWorker, kResourceTracker, kShmManager, kOther };

struct JobProcess {
  ProcessRow row;
  JobRole role = JobRole::kOther;
  std::optional<int> rank;        // for workers: the rank they serve
};

/// The processes of one job, the launcher (or outermost shell of it) first, parents before children.
struct JobTree {
  std::vector<JobProcess> processes;
  pid_t launcher = 0;
  std::optional<int> world_size;
  std::vector<std::string> notes;
};

/// Finds the job around `pid`: up to its launcher, down to every worker; `whole_tree` false = this process only.
base::Result<JobTree> find_job(pid_t pid, bool whole_tree);

}  // namespace ddpdoctor::sources
