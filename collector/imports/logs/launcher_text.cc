// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/logs/launcher_text.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/logs/torchrun_text.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostEnded = 70'000;

struct Word {
  std::string_view text;
  int signal;
};

/// Names used by strsignal and Python.
constexpr std::array<Word, 9> kSignals = {{{"Out Of Memory", SIGKILL},
                                           {"Killed", SIGKILL},
                                           {"SIGKILL", SIGKILL},
                                           {"Aborted", SIGABRT},
                                           {"SIGABRT", SIGABRT},
                                           {"Segmentation fault", SIGSEGV},
                                           {"SIGSEGV", SIGSEGV},
                                           {"Bus error", SIGBUS},
                                           {"SIGBUS", SIGBUS}}};

std::optional<model::Process> ended(std::int64_t rank, model::Exit exit) {
  model::Process process = failed_rank();
  process.rank = static_cast<model::Rank>(rank);
  process.exit = exit;
  return process;
}

std::optional<model::Exit> exit_in(std::string_view text, std::string_view status_word) {
  for (const Word& word : kSignals) {
    if (text.starts_with(word.text)) {
      return model::Exit{.status = {}, .signal = word.signal};
    }
  }
  const auto status = take_prefix(text, status_word) ? take_number(text, 255) : std::nullopt;
  return status ? std::optional(model::Exit{.status = static_cast<int>(*status), .signal = {}})
                : std::nullopt;
}

/// "mpirun noticed that process rank 0 with PID 21183 on node host01 exited on signal 9 (Killed)."
std::optional<model::Process> of_open_mpi(std::string_view line) {
  const auto told = between(line, " noticed that process rank ", "exited on signal ");
  if (!told) {
    return std::nullopt;
  }
  std::string_view rest = *told;
  const auto rank = take_number(rest, kMaxRank);
  std::string_view number =
      line.substr(static_cast<std::size_t>(told->data() - line.data()) + told->size());
  take_prefix(number, "exited on signal ");
  const auto signal = take_number(number, 64);
  if (!rank || !signal || *signal == SIGTERM) {
    return std::nullopt;
  }
  auto process = ended(*rank, {.status = {}, .signal = static_cast<int>(*signal)});
  process->pid = pid_of(between(*told, " with PID ", " ").value_or("")).value_or(0);
  process->host = base::elide(between(*told, " on node ", " ").value_or(""), 256);
  return process;
}

/// "mpirun detected that one or more processes exited with non-zero status, … The first process to
/// do so was:", and below it "Process name: [[29973,1],0]" (Open MPI 5: "[prterun-node1-7@1,0]")
/// and "Exit code:    1".
class FirstOfOpenMpi {
 public:
  std::optional<model::Process> read(std::string_view line) {
    line = base::trim(line);
    if (line.find(" detected that one or more processes exited with non-zero status") !=
        line.npos) {
      told_ = true;
      rank_ = -1;
    } else if (told_ && take_prefix(line, "Process name: ") && line.ends_with(']')) {
      line.remove_suffix(1);
      rank_ = number_of(line.substr(line.rfind(',') + 1), kMaxRank).value_or(-1);
    } else if (told_ && rank_ >= 0 && take_prefix(line, "Exit code:")) {
      const auto status = number_of(base::trim(line), 255);
      told_ = false;
      return status ? ended(rank_, {.status = static_cast<int>(*status), .signal = {}})
                    : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  bool told_ = false;
  std::int64_t rank_ = -1;
};

/// Of Intel MPI, in a box below "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES": "=   RANK 3
/// PID 12345 RUNNING AT node7", "=   KILLED BY SIGNAL: 9 (Killed)" or "=   EXIT STATUS: 1". The
/// first box is of the first process: mpiexec then ends the others.
class FirstOfHydra {
 public:
  std::optional<model::Process> read(std::string_view line) {
    if (done_ || !take_prefix(line, "=")) {
      return std::nullopt;
    }
    line = base::trim(line);
    if (take_prefix(line, "RANK ")) {
      rank_ = take_number(line, kMaxRank);
      pid_ = number_behind(line, " PID ", kMaxPid).value_or(0);
      const std::size_t at = line.find(" RUNNING AT ");
      host_ = at == line.npos ? std::string() : base::elide(base::trim(line.substr(at + 12)), 256);
      return std::nullopt;
    }
    const bool by_signal = take_prefix(line, "KILLED BY SIGNAL: ");
    if (!rank_ || (!by_signal && !take_prefix(line, "EXIT STATUS: "))) {
      return std::nullopt;
    }
    const auto number = take_number(line, 255);
    done_ = true;
    if (!number || *number == 0 || (by_signal && *number == SIGTERM)) {
      return std::nullopt;
    }
    const auto code = static_cast<int>(*number);
    auto process = ended(*rank_, by_signal ? model::Exit{.status = {}, .signal = code}
                                           : model::Exit{.status = code, .signal = {}});
    process->pid = static_cast<pid_t>(pid_);
    process->host = host_;
    return process;
  }

 private:
  bool done_ = false;
  std::optional<std::int64_t> rank_;
  std::int64_t pid_ = 0;
  std::string host_;
};

/// "srun: error: node1: task 13: Aborted (core dumped)".
std::optional<model::Process> of_srun(std::string_view line) {
  if (!take_prefix(line, "srun: error: ")) {
    return std::nullopt;
  }
  const std::size_t at = line.find(": task ");
  if (at == line.npos) {
    return std::nullopt;
  }
  std::string_view rest = line.substr(at + 7);
  const auto rank = take_number(rest, kMaxRank);
  const auto exit =
      rank && take_prefix(rest, ": ") ? exit_in(rest, "Exited with exit code ") : std::nullopt;
  return exit ? ended(*rank, *exit) : std::nullopt;
}

/// "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL",
/// "Exception: process 1 …" before torch 1.6.
std::optional<model::Process> of_spawn(std::string_view line) {
  constexpr std::string_view kException = "Exception: process ";
  const std::size_t at = line.find(kException);
  if (at == line.npos) {
    return std::nullopt;
  }
  std::string_view rest = line.substr(at + kException.size());
  const auto rank = take_number(rest, kMaxRank);
  if (!rank || !take_prefix(rest, " terminated with ")) {
    return std::nullopt;
  }
  take_prefix(rest, "signal ");
  const auto exit = exit_in(rest, "exit code ");
  return exit ? ended(*rank, *exit) : std::nullopt;
}

/// "-9": Python's subprocess notation for an end by a signal; "1" for a status.
std::optional<model::Exit> exit_of_code(std::string_view text) {
  const bool by_signal = take_prefix(text, "-");
  const auto number = take_number(text, 255);
  if (!number) {
    return std::nullopt;
  }
  const auto code = static_cast<int>(*number);
  return by_signal ? model::Exit{.status = {}, .signal = code}
                   : model::Exit{.status = code, .signal = {}};
}

/// The number after a word.
/// The ranks that the DeepSpeed launcher of a log started: "nnodes=1, num_local_procs=4,
/// node_rank=0".
struct DeepSpeedNode {
  // false: several launchers wrote this log, or the number of ranks is unknown: no rank is certain.
  bool one = true;
  std::int64_t first = 0;

  void read(std::string_view line) {
    const auto nodes = number_behind(line, "nnodes=", kMaxRank);
    const auto processes = number_behind(line, "num_local_procs=", kMaxRank);
    const auto node = number_behind(line, "node_rank=", kMaxRank);
    if (nodes && processes && node) {
      one = one && !told_;
      told_ = true;
      first = *node * *processes;
    }
  }
  [[nodiscard]] bool is_sure() const {
    return one && told_;
  }
  /// The log begins behind the line that tells it.
  [[nodiscard]] bool is_cut_off() const {
    return one && !told_;
  }

 private:
  bool told_ = false;
};

/// "[ERROR] [launch.py:325:sigkill_handler] ['/usr/bin/python3', '-u', 'train.py',
/// '--local_rank=3'] exits with return code = -9".
std::optional<model::Process> of_deepspeed(std::string_view line, const DeepSpeedNode& node) {
  constexpr std::string_view kExits = "] exits with return code = ";
  const std::size_t at = line.find(kExits);
  if (at == line.npos || line.find("[launch.py:") == line.npos || !node.one) {
    return std::nullopt;
  }
  const auto local = number_behind(line.substr(0, at), "--local_rank=", kMaxRank);
  const auto exit = exit_of_code(line.substr(at + kExits.size()));
  if (exit && !exit->signal && node.is_cut_off()) {
    return std::nullopt;  // an exception may be told by others: only a death is worth the guess
  }
  return local && exit ? ended(node.first + *local, *exit) : std::nullopt;
}

/// Lightning's "[rank: 1] Child process with PID 40112 terminated with code -9. Forcefully …".
std::optional<model::Process> of_lightning(const model::LogLine& line) {
  const auto told = between(line.text, "Child process with PID ", ". Forcefully terminating");
  if (!told || !line.rank) {
    return std::nullopt;
  }
  std::string_view rest = *told;
  const auto pid = take_number(rest, INT32_MAX);
  if (!pid || !take_prefix(rest, " terminated with code ")) {
    return std::nullopt;
  }
  const auto exit = exit_of_code(rest);
  if (!exit) {
    return std::nullopt;
  }
  auto process = ended(*line.rank, *exit);
  process->pid = static_cast<pid_t>(*pid);
  return process;
}

/// bash's "start.sh: line 14: 20015 Killed                  RANK=5 python train.py > 5.log": it
/// prints the command of a child that a signal ended. Only a rank's command names a rank.
std::optional<model::Process> of_shell(std::string_view line) {
  const std::size_t at = line.find(": line ");
  std::string_view rest = line.substr(at == line.npos ? line.size() : at + 7);
  if (!take_number(rest, kMaxLine) || !take_prefix(rest, ": ")) {
    return std::nullopt;
  }
  rest = base::trim(rest);
  const auto pid = take_number(rest, kMaxPid);
  const auto exit = pid && take_prefix(rest, " ") ? exit_in(rest, "Exit ") : std::nullopt;
  const auto rank = exit ? rank_in_command(words_of(rest)) : std::nullopt;
  if (!rank) {
    return std::nullopt;
  }
  auto process = ended(*rank, *exit);
  process->pid = static_cast<pid_t>(*pid);
  return process;
}

}  // namespace

void read_launcher_text(std::string_view log, model::JobModel& job) {
  std::vector<model::Process> out;
  // Under torchrun, a task of Slurm is a node and not a rank.
  const bool tasks_are_ranks = log.find("torch/distributed/elastic") == log.npos;
  DeepSpeedNode node;
  FirstOfOpenMpi first;
  FirstOfHydra first_of_hydra;
  std::optional<model::Process> guess;  // only its local rank is known
  int guesses = 0;
  bool cleaning = false;  // processes that end from here on were ended by the launcher
  for (const std::string_view raw : base::split(log, '\n')) {
    const model::LogLine whole = model::read_log_line(raw.substr(0, 65'536));
    const std::string_view line = whole.text;
    cleaning = cleaning || line.starts_with("srun: Job step aborted") ||
               line.starts_with("slurmstepd: error: *** STEP");
    auto process = of_open_mpi(line);
    process = !process && tasks_are_ranks && !cleaning ? of_srun(line) : std::move(process);
    process = process ? std::move(process) : of_spawn(line);
    process = process ? std::move(process) : of_shell(line);
    process = process ? std::move(process) : of_lightning(whole);
    node.read(line);
    process = process ? std::move(process) : first.read(line);
    process = process ? std::move(process) : first_of_hydra.read(line);
    if (auto end = process ? std::nullopt : of_deepspeed(line, node)) {
      (node.is_sure() ? process : guess) = std::move(end);
      guesses += node.is_sure() ? 0 : 1;
    }
    if (process && out.size() < kMostEnded) {
      out.push_back(std::move(*process));
    }
  }
  if (guesses == 1 && node.is_cut_off()) {  // several are of several nodes
    job.coverage.warnings.push_back(
        fmt::format("DeepSpeed's launcher names only local rank {0}: that is rank {0} on the first "
                    "node alone",
                    *guess->rank));
    out.push_back(std::move(*guess));
  }
  add_ended(std::move(out), job);
}

}  // namespace ddpdoctor::imports
