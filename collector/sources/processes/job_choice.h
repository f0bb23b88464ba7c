// SPDX-License-Identifier: Apache-2.0
// Which job a pid means. Any process of a job names it; a shell, init or a container's first
// process may stand above one job, above several or above none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::sources {

/// The pid to observe, and a sentence when it is not the one that was asked for.
struct JobChoice {
  pid_t pid = 0;
  std::string note;
};

/// Fails when `asked` belongs to no job of PyTorch or MPI, and when several jobs run below it: the
/// hint lists the jobs that there are. A pid that cannot be judged is chosen as it is.
base::Result<JobChoice> choose_job(pid_t asked);

/// The same over a table that was read before. `has_torch` tells whether a process has libtorch
/// mapped; nothing = it may not be read.
using HasTorch = std::function<std::optional<bool>(pid_t)>;
base::Result<JobChoice> choose_job(pid_t asked, ProcessTable table, const HasTorch& has_torch);

/// A job that has processes on this machine.
struct JobHere {
  pid_t pid = 0;        // its topmost process, or one of these
  std::string text;     // the same on every machine of the job; empty = unknown here
  std::string command;  // of that process, for people
  std::size_t ranks = 0;
};

/// Which jobs are meant; empty = any.
struct JobFilter {
  std::string variable;  // "NAME=VALUE", in the environment of a process of it
  std::string text;      // a part of its command or of JobHere::text
  std::string except;    // a process with this word in its command is nobody's: it is of the look
};

/// The jobs of this machine that nobody needs to name: those with ranks, else those that a launcher
/// waits to start, else programs that use torch.
std::vector<JobHere> jobs_here(const JobFilter& filter);
std::vector<JobHere> jobs_here(const JobFilter& filter, ProcessTable table,
                               const HasTorch& has_torch);

}  // namespace ddpdoctor::sources
