// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/processes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr int kMaxAncestors = 64;  // a hostile capture may contain a cycle of parents

constexpr std::array<std::pair<int, std::string_view>, 12> kSignals = {{
    {1, "SIGHUP"},
    {2, "SIGINT"},
    {3, "SIGQUIT"},
    {4, "SIGILL"},
    {6, "SIGABRT"},
    {7, "SIGBUS"},
    {8, "SIGFPE"},
    {9, "SIGKILL"},
    {11, "SIGSEGV"},
    {13, "SIGPIPE"},
    {15, "SIGTERM"},
    {31, "SIGSYS"},
}};

std::optional<pid_t> pid_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) {
    return std::nullopt;
  }
  text.remove_prefix(prefix.size());
  pid_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// The main thread of a program begins in _start; one that begins in clone() was made by it.
bool was_cloned(const model::Process& process) {
  if (process.threads.empty() || process.pid <= 0 || process.threads.front().tid != process.pid ||
      process.threads.front().frames.size() < 2) {
    return false;
  }
  const model::Frame& outermost = process.threads.front().frames.back();
  const model::Frame& called = *std::next(process.threads.front().frames.rbegin());
  return (outermost.function == "clone" || outermost.function == "__clone" ||
          outermost.function == "clone3" || outermost.function == "__clone3") &&
         called.function.find("start_thread") == std::string::npos && !called.function.empty();
}

/// multiprocessing of Python 2 has no other way to start a process on Linux. People cut a stack
/// above Process.run.
bool runs_process_of_python_2(const model::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
    return frame.language == model::Language::kPython &&
           frame.file.ends_with("multiprocessing/process.py") &&
           frame.file.find("/python2.") != std::string::npos;
  });
}

/// How multiprocessing (and billiard and multiprocess, which are copies of it) enters a forked
/// child: the outermost frames are the parent's own stack. Or what Python calls in a child first.
bool started_by_fork(const model::Process& process) {
  return was_cloned(process) ||
         std::any_of(process.threads.begin(), process.threads.end(), [](const auto& thread) {
           return model::has_python_frame(thread, "_launch", "/popen_fork.py") ||
                  runs_process_of_python_2(thread) ||
                  (model::has_python_frame(thread, "_bootstrap", "multiprocessing/process.py") &&
                   model::has_python_frame(thread, "__init__", "multiprocessing/forking.py")) ||
                  model::has_python_frame(thread, "_after_at_fork_child_reinit_locks",
                                          "logging/__init__.py") ||
                  model::has_python_frame(thread, "_after_fork", "/threading.py") ||
                  model::has_python_frame(thread, "spawn_worker", "gunicorn/arbiter.py") ||
                  model::has_native_frame(thread, "uwsgi_respawn_worker") ||
                  model::has_native_frame(thread, "PyOS_AfterFork_Child");
         });
}

}  // namespace

namespace {

void sort_by_host(std::vector<const model::Process*>& processes) {
  const auto before = [](const model::Process* a, const model::Process* b) {
    return std::tie(a->host, a->pid) < std::tie(b->host, b->pid);
  };
  if (!std::is_sorted(processes.begin(), processes.end(), before)) {  // usually they are sorted
    std::stable_sort(processes.begin(), processes.end(), before);
  }
}

bool is_child(const model::Process& process, const model::Process& parent) {
  if (&process == &parent || process.host != parent.host) {
    return false;
  }
  // Handwritten captures may omit the parent: a process that serves this rank and is not a rank
  // counts as its child.
  const bool serves = process.ppid == 0 && parent.role == model::Role::kRank && parent.rank &&
                      process.rank == parent.rank && process.role != model::Role::kRank;
  return serves || (parent.pid != 0 && process.ppid == parent.pid);
}

}  // namespace

std::vector<const model::Process*> processes(const model::JobModel& job) {
  std::vector<const model::Process*> out;
  if (const model::Observation* now = model::latest(job)) {
    for (const model::Process& process : now->processes) {
      out.push_back(&process);
    }
  }
  sort_by_host(out);
  return out;
}

std::vector<const model::Process*> children_of(const model::JobModel& job,
                                               const model::Process& parent) {
  std::vector<const model::Process*> out;
  if (const model::Observation* now = model::latest(job)) {
    for (const model::Process& process : now->processes) {
      if (is_child(process, parent)) {
        out.push_back(&process);
      }
    }
  }
  sort_by_host(out);
  return out;
}

std::optional<model::Rank> served_rank(const model::JobModel& job, const model::Process& process) {
  const model::Process* at = &process;
  for (int step = 0; at != nullptr && step < kMaxAncestors; ++step) {
    if (at->rank) {
      return at->rank;
    }
    at = model::process(job, at->ppid);
  }
  return std::nullopt;
}

bool crashed(const model::Exit& exit) {
  constexpr std::array<int, 5> kOwn = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
  return exit.signal && std::find(kOwn.begin(), kOwn.end(), *exit.signal) != kOwn.end();
}

bool alive(const model::Process& process) {
  return process.state != 'Z' && process.state != 'X' && !process.exit;
}

bool forked_without_exec(const model::JobModel& job, const model::Process& process) {
  for (const model::Fact* fact : model::facts(job, "fork")) {
    if (fact->pid == process.pid) {
      return true;
    }
  }
  if (started_by_fork(process)) {
    return true;
  }
  const model::Process* parent = model::process(job, process.ppid);
  return parent != nullptr && !process.command.empty() && process.command == parent->command &&
         (process.exe.empty() || parent->exe.empty() || process.exe == parent->exe);
}

model::Exit exit_told_by(const model::Fact& fact) {
  model::Exit exit;
  if (const auto signal = fact.number("signal")) {
    exit.signal = static_cast<int>(*signal);
  } else if (const auto status = fact.number("status")) {
    exit.status = static_cast<int>(*status);
  }
  return exit;
}

std::optional<model::Exit> exit_of(const model::JobModel& job, const model::Process& process) {
  if (process.exit) {
    return process.exit;
  }
  for (const model::Fact* fact : model::facts(job, "exit")) {
    if (fact->pid != process.pid) {
      continue;
    }
    return exit_told_by(*fact);
  }
  return std::nullopt;
}

bool was_cleaned_up(const model::JobModel& job, const model::Process& process) {
  const auto cleaned = model::facts(job, "cleaned-up");
  const auto exit = exit_of(job, process);
  return std::any_of(cleaned.begin(), cleaned.end(), [&](const model::Fact* fact) {
    return fact->pid == process.pid && (!exit || fact->number("signal") == exit->signal);
  });
}

const model::Frame* place_of_crash(const model::Process* process) {
  if (process == nullptr) {
    return nullptr;
  }
  for (const model::Thread& thread : process->threads) {
    if (thread.state == 'X') {
      return model::user_frame(thread);
    }
  }
  return nullptr;
}

std::string named(pid_t pid, std::string_view otherwise) {
  return pid > 0 ? fmt::format("process {}", pid) : std::string(otherwise);
}

std::string pids_said(const std::vector<pid_t>& pids) {
  if (pids.size() < 2) {
    return pids.empty() ? std::string() : std::to_string(pids.front());
  }
  return fmt::format("{} and {}", fmt::join(pids.begin(), pids.end() - 1, ", "), pids.back());
}

std::string with_command(const model::Process& process) {
  constexpr std::size_t kLongestCommand = 80;
  const std::string command =
      base::elide(fmt::format("{}", fmt::join(process.command, " ")), kLongestCommand);
  return fmt::format("process {}{}", process.pid, command.empty() ? command : " (" + command + ")");
}

std::string signal_name(int signal) {
  const auto found = std::find_if(kSignals.begin(), kSignals.end(),
                                  [signal](const auto& entry) { return entry.first == signal; });
  return found == kSignals.end() ? fmt::format("signal {}", signal) : std::string(found->second);
}

std::string how_it_ended(const std::optional<model::Exit>& exit) {
  if (exit && exit->signal) {
    return "killed by " + signal_name(*exit->signal);
  }
  if (exit && exit->status) {
    return fmt::format("exited with status {}", *exit->status);
  }
  return "ended";
}

std::optional<pid_t> pid_field(const model::Fact& fact, const std::string& field) {
  const auto value = fact.number(field);
  if (!value || *value < 1 || *value > 4194304) {  // the kernel's PID_MAX_LIMIT
    return std::nullopt;
  }
  return static_cast<pid_t>(*value);
}

std::optional<pid_t> target_pid(const model::WaitsOn& waits_on) {
  return pid_after(waits_on.target, "pid:");
}

std::optional<pid_t> target_thread(const model::WaitsOn& waits_on) {
  return pid_after(waits_on.target, "thread:");
}

std::optional<std::string> target_path(const model::WaitsOn& waits_on) {
  constexpr std::string_view kFile = "file:";
  if (waits_on.target.starts_with(kFile)) {
    return waits_on.target.substr(kFile.size());
  }
  if (waits_on.detail.starts_with('/')) {
    return waits_on.detail;
  }
  return std::nullopt;
}

const model::WaitsOn* waits_on(const model::Thread& thread, std::string_view kind) {
  return thread.waits_on && thread.waits_on->kind == kind ? &*thread.waits_on : nullptr;
}

bool aborted_while_ending(const model::JobModel& job, model::Rank rank,
                          const std::optional<model::Exit>& exit) {
  constexpr int kAborted = 6;  // SIGABRT
  if (!exit || exit->signal != kAborted) {
    return false;
  }
  const auto aborts = model::facts(job, "abort");
  const bool seen = std::any_of(aborts.begin(), aborts.end(), [rank](const model::Fact* fact) {
    return fact->rank == rank && fact->flag("ending").value_or(false);
  });
  const bool said = std::any_of(job.logs.begin(), job.logs.end(), [rank](const model::Log& log) {
    return log.rank.value_or(rank) == rank &&
           log.text.find("terminate called without an active exception") != std::string::npos;
  });
  bool called = false;
  for (const model::CollectiveCall& call : job.collectives) {
    const bool own = call.rank == rank;
    called = called || own;
    if (own && call.state != model::CallState::kCompleted) {
      return false;
    }
  }
  return called && (seen || said);
}

bool torchrun_watches(const model::JobModel& job) {
  const auto all = processes(job);
  return std::any_of(all.begin(), all.end(), [](const model::Process* process) {
    const model::Thread* main = model::main_thread(*process);
    return alive(*process) && main != nullptr &&
           model::find_python_frame(*main, "_invoke_run",
                                    "torch/distributed/elastic/agent/server/api.py") != nullptr;
  });
}

}  // namespace ddpdoctor::detectors
