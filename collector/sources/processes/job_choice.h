// SPDX-License-Identifier: Apache-2.0
// The job that a pid means. Any process of a job identifies it; a shell, init or a container's
// first process may have one job below it, several, or none.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::sources {

/// The pid to observe, and a sentence if it differs from the given one.
struct JobChoice {
  pid_t pid = 0;
  std::string note;
  ProcessTable processes{};  // as they were read for the choice
};

/// Fails if `asked` belongs to no job of PyTorch or MPI, or if several jobs run below it; the hint
/// lists the existing jobs. A pid that cannot be judged is accepted unchanged.
base::Result<JobChoice> choose_job(pid_t asked);

/// The same for an existing process table. `has_torch` says whether a process has libtorch mapped;
/// nothing = not readable.
using HasTorch = std::function<std::optional<bool>(pid_t)>;
base::Result<JobChoice> choose_job(pid_t asked, ProcessTable table, const HasTorch& has_torch);

/// A job with processes on this machine.
struct JobHere {
  pid_t pid = 0;        // its topmost process, or one of them
  std::string text;     // the same on every machine of the job; empty = unknown here
  std::string command;  // command of that process, for people
  std::size_t ranks = 0;
};

/// Selects jobs; empty fields match any.
struct JobFilter {
  std::string variable;  // "NAME=VALUE" in the environment of one of its processes
  std::string text;      // a part of its command or of JobHere::text
  // Processes with this word in their command are ignored: they belong to the observer.
  std::string except;
};

/// The jobs of this machine that match without a pid: those with ranks, else those whose launcher
/// waits to start, else programs that use torch.
std::vector<JobHere> jobs_here(const JobFilter& filter);
std::vector<JobHere> jobs_here(const JobFilter& filter, ProcessTable table,
                               const HasTorch& has_torch);

}  // namespace ddpdoctor::sources
