// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/roles.h"

#include <algorithm>
#include <array>
#include <initializer_list>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/sources/processes/proc_file.h"

namespace ddpdoctor::sources {

namespace {

constexpr int kLargestRank = 1 << 24;  // a larger number in an environment is not a rank

template <std::size_t Size>
bool one_of(std::string_view name, const std::array<std::string_view, Size>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 9> kShells{"sh",   "bash", "dash", "zsh", "ksh",
                                                  "fish", "ash",  "csh",  "tcsh"};

constexpr std::array<std::string_view, 12> kLauncherPrograms{
    "mpirun", "mpiexec", "orterun",       "prterun",         "prte",
    "prted",  "orted",   "mpiexec.hydra", "hydra_pmi_proxy", "hydra_bstrap_proxy",
    "srun",   "torchrun"};

// Scripts and modules of Python that start ranks.
constexpr std::array<std::string_view, 10> kLauncherScripts{
    "torchrun", "accelerate", "accelerate-launch", "deepspeed", "horovodrun",
    "composer", "colossalai", "lightning",         "fabric",    "torchx"};
constexpr std::array<std::string_view, 12> kLauncherModules{
    "torch.distributed.run",     "torch.distributed.launch",   "torch.distributed.launcher",
    "torch.distributed.elastic", "accelerate.commands.launch", "accelerate.commands.accelerate_cli",
    "deepspeed.launcher.launch", "deepspeed.launcher.runner",  "colossalai.cli",
    "composer.cli.launcher",     "lightning.fabric.cli",       "torch_xla.distributed.xla_dist"};

constexpr std::array<std::string_view, 15> kWrappers{
    "nsys",   "ncu",  "numactl", "taskset", "env",    "timeout", "stdbuf", "nice",
    "ionice", "time", "strace",  "ltrace",  "setsid", "nohup",   "conda"};

constexpr std::array<std::string_view, 42> kBoundaries{"systemd",       "init",
                                                       "sshd",          "sshd-session",
                                                       "login",         "su",
                                                       "sudo",          "runuser",
                                                       "doas",          "tmux",
                                                       "screen",        "zellij",
                                                       "mosh-server",   "tini",
                                                       "dumb-init",     "docker-init",
                                                       "catatonit",     "containerd-shim",
                                                       "runc",          "conmon",
                                                       "crond",         "cron",
                                                       "atd",           "supervisord",
                                                       "slurmstepd",    "slurmd",
                                                       "pbs_mom",       "kubelet",
                                                       "Runner.Worker", "Runner.Listener",
                                                       "gitlab-runner", "buildkite-agent",
                                                       "jenkins",       "java",
                                                       "node",          "code",
                                                       "ctest",         "ninja",
                                                       "make",          "gdb",
                                                       "ddpdoctor",     "py-spy"};
constexpr std::array<std::string_view, 9> kBoundaryScripts{
    "pytest",  "py.test",     "jupyter", "jupyter-lab", "jupyter-notebook",
    "ipython", "supervisord", "tox",     "nox"};

std::string_view program_name(const ProcessRow& row) {
  if (row.command.empty()) {
    return row.comm;
  }
  // Login shells are "-bash"; daemons that change their title write "sshd: user@pts/0".
  const std::string_view title = row.command.front();
  const std::string_view name = base::file_name(title.substr(0, title.find(": ")));
  return name.starts_with('-') ? name.substr(1) : name;
}

bool is_python_name(std::string_view name) {
  return name.starts_with("python") || name.starts_with("pypy");
}

bool contains_argument(const ProcessRow& row, std::string_view part) {
  return std::any_of(row.command.begin(), row.command.end(), [part](const std::string& argument) {
    return argument.find(part) != std::string::npos;
  });
}

/// A shell with a command to run; without one, a person types into it.
bool has_script(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& argument = command[i];
    if (argument == "--rcfile" || argument == "--init-file") {
      ++i;  // how a terminal starts an interactive shell
    } else if (!argument.starts_with('-') && !argument.starts_with('+')) {
      return true;
    } else if (!argument.starts_with("--") && argument.find('c') != std::string::npos) {
      return true;
    }
  }
  return false;
}

/// ".../torch/distributed/run.py" and "-m torch.distributed.run" are the same module.
bool names_module(std::string_view target, std::string_view module) {
  if (target.starts_with("-m ")) {
    const std::string_view name = target.substr(3);
    return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
  }
  std::string path = fmt::format("/{}", module);
  std::replace(path.begin(), path.end(), '.', '/');
  return target.find(path + ".py") != std::string_view::npos ||
         target.find(path + "/") != std::string_view::npos;
}

bool is_launcher_target(const std::string& target) {
  return one_of(base::file_name(target), kLauncherScripts) ||
         std::any_of(kLauncherModules.begin(), kLauncherModules.end(),
                     [&target](std::string_view module) { return names_module(target, module); });
}

Program python_program(const ProcessRow& row) {
  if (contains_argument(row, "multiprocessing.resource_tracker") ||
      contains_argument(row, "multiprocessing.semaphore_tracker")) {
    return Program::kResourceTracker;
  }
  if (contains_argument(row, "multiprocessing.forkserver")) {
    return Program::kForkServer;
  }
  if (contains_argument(row, "multiprocessing.spawn") ||
      contains_argument(row, "--multiprocessing-fork")) {
    return Program::kSpawned;
  }
  if (contains_argument(row, "torch/_inductor/compile_worker")) {
    return Program::kCompileWorker;
  }
  const std::string target = python_target(row.command).value_or("");
  const std::string_view script =
      target.starts_with("-m ") ? std::string_view(target).substr(3) : base::file_name(target);
  if (row.comm == "pt_elastic" || is_launcher_target(target)) {
    return Program::kLauncher;
  }
  return one_of(script, kBoundaryScripts) ? Program::kBoundary : Program::kPython;
}

std::optional<int> environment_number(const std::map<std::string, std::string>& environment,
                                      std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const auto found = environment.find(name);
    const auto value =
        found == environment.end() ? std::nullopt : number<int>(base::trim(found->second));
    if (value && *value >= 0 && *value < kLargestRank) {
      return value;
    }
  }
  return std::nullopt;
}

std::string environment_text(const std::map<std::string, std::string>& environment,
                             const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

/// A text that all processes of one job share and other jobs do not.
std::string job_text(const std::map<std::string, std::string>& environment) {
  if (const std::string port = environment_text(environment, "MASTER_PORT"); !port.empty()) {
    return fmt::format("{}:{} of {}, {}", environment_text(environment, "MASTER_ADDR"), port,
                       environment_text(environment, "WORLD_SIZE"),
                       environment_text(environment, "TORCHELASTIC_RUN_ID"));
  }
  for (const char* name : {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"}) {
    if (const std::string text = environment_text(environment, name); !text.empty()) {
      return text;
    }
  }
  const std::string slurm = environment_text(environment, "SLURM_JOB_ID");
  return slurm.empty()
             ? slurm
             : fmt::format("slurm {}.{}", slurm, environment_text(environment, "SLURM_STEP_ID"));
}

/// Identifies one program in one cluster; a worker started before any program has no number.
std::string ray_text(const std::map<std::string, std::string>& environment) {
  const std::string program = environment_text(environment, "RAY_JOB_ID");
  const bool none = program.find_first_not_of('f') == std::string::npos;
  return none ? std::string()
              : fmt::format("{} of raylet {}", program,
                            environment_text(environment, "RAY_RAYLET_PID"));
}

}  // namespace

Program program_of(const ProcessRow& row) {
  const std::string_view name = program_name(row);
  // Comm is limited to 15 bytes.
  if (name == "torch_shm_manager" || row.comm == "torch_shm_manag") {
    return Program::kShmManager;
  }
  if (row.pid == 1 || row.kernel_thread || one_of(name, kBoundaries)) {
    return Program::kBoundary;
  }
  if (one_of(name, kLauncherPrograms)) {
    return Program::kLauncher;
  }
  if (one_of(name, kShells)) {
    return row.command.size() > 1 && has_script(row.command) ? Program::kShell
                                                             : Program::kInteractive;
  }
  if (one_of(name, kWrappers)) {
    return Program::kWrapper;
  }
  if (is_python_name(name) || is_python_name(base::file_name(row.exe)) ||
      row.comm.starts_with("pt_")) {
    return python_program(row);
  }
  return Program::kOther;
}

bool runs_python(Program program) {
  return program == Program::kPython || program == Program::kSpawned ||
         program == Program::kForkServer;
}

std::optional<std::string> python_target(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& argument = command[i];
    if (argument == "-m") {
      return i + 1 < command.size() ? std::optional("-m " + command[i + 1]) : std::nullopt;
    }
    if (argument == "-c") {
      return argument;
    }
    if (argument == "-X" || argument == "-W" || argument == "--check-hash-based-pycs") {
      ++i;
    } else if (argument.empty() || argument == "-" || argument.front() != '-') {
      return argument;
    } else if (!argument.starts_with("--") && argument.ends_with('m') && argument.size() > 2 &&
               i + 1 < command.size()) {
      return "-m " + command[i + 1];  // "-um module"
    }
  }
  return std::nullopt;
}

RankClaim rank_claim(const std::map<std::string, std::string>& environment) {
  RankClaim claim;
  claim.job = job_text(environment);
  claim.ray = ray_text(environment);
  claim.raylet = number<pid_t>(environment_text(environment, "RAY_RAYLET_PID"));
  claim.rank = environment_number(environment, {"RANK"});
  claim.world_size = environment_number(environment, {"WORLD_SIZE"});
  claim.local_rank = environment_number(environment, {"LOCAL_RANK"});
  claim.local_world_size = environment_number(environment, {"LOCAL_WORLD_SIZE"});
  claim.nodes = environment_number(environment, {"GROUP_WORLD_SIZE", "NNODES"});
  if (!claim.rank && claim.local_rank && claim.world_size &&
      environment_number(environment, {"NODE_RANK"}).value_or(0) == 0) {
    claim.rank = claim.local_rank;  // Lightning's subprocesses have LOCAL_RANK and NODE_RANK only
  }
  if (!claim.rank) {
    claim.weak = true;
    claim.rank = environment_number(environment, {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                                  "MV2_COMM_WORLD_RANK", "SLURM_PROCID"});
    claim.world_size = environment_number(
        environment, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS"});
    claim.local_rank =
        environment_number(environment, {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                         "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"});
    claim.local_world_size = environment_number(
        environment,
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"});
    claim.nodes = environment_number(environment, {"SLURM_NNODES"});
  }
  if (claim.rank && claim.world_size && *claim.rank >= *claim.world_size) {
    claim.weak =
        true;  // WORLD_SIZE of another layer: trust the rank only if there is nothing better
  }
  return claim;
}

bool is_fork_of(const ProcessRow& child, const ProcessRow& parent) {
  if (child.arguments_at != 0 && parent.arguments_at != 0) {
    return child.arguments_at ==
           parent.arguments_at;  // exec creates a new stack at a random address
  }
  return child.command == parent.command && !child.command.empty();
}

}  // namespace ddpdoctor::sources
