// SPDX-License-Identifier: Apache-2.0
// The role of a single process from its command line and environment alone; job_tree combines these
// judgements.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/sources/processes/process_table.h"

namespace ddpdoctor::sources {

/// The kind of program a command line shows.
enum class Program {
  kOther,
  kPython,           // a script, module or -c code of the user
  kSpawned,          // child of multiprocessing with its own interpreter: spawn_main
  kForkServer,       // multiprocessing's fork server, and what it forks
  kResourceTracker,  // multiprocessing's resource or semaphore tracker
  kCompileWorker,    // inductor's compile pool
  kLauncher,         // torchrun, accelerate, mpirun, deepspeed …
  kShell,            // a shell with a script or -c
  kInteractive,      // a shell with neither: a person or an agent uses it
  kWrapper,          // runs another program in its place or below it: nsys, numactl, env, timeout
  kShmManager,       // torch_shm_manager
  // No ancestor belongs to the job: init, sshd, tmux, containers' init, CI runners, pytest,
  // ddpdoctor.
  kBoundary,
};
Program program_of(const ProcessRow& row);

/// Runs Python: may itself be a rank.
bool runs_python(Program program);

/// The script, module (as "-m name") or "-c" of a Python command line; nothing for other programs.
std::optional<std::string> python_target(const std::vector<std::string>& command);

/// What the environment says about a process's position in the job.
struct RankClaim {
  std::optional<int> rank;  // global
  std::optional<int> world_size;
  std::optional<int> local_rank;
  std::optional<int> local_world_size;
  std::optional<int> nodes;
  bool weak =
      false;  // set by the batch system or MPI, which also label shells and launchers; not by RANK
  std::string job;  // equal for all processes of a job; empty = unknown
  // Ray's workers are not children of the program they serve; only a number connects them.
  std::string ray;              // equal for all processes of a program; empty = not a worker
  std::optional<pid_t> raylet;  // the process that started it
};
RankClaim rank_claim(const std::map<std::string, std::string>& environment);

/// `child` was forked by `parent` and never called exec.
bool is_fork_of(const ProcessRow& child, const ProcessRow& parent);

/// The name torch gives to the main thread of a DataLoader worker.
constexpr std::string_view kDataLoaderComm = "pt_data_worker";

}  // namespace ddpdoctor::sources
