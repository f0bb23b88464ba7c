// SPDX-License-Identifier: Apache-2.0
// Real processes for tests: started, waited for until a condition is true, ended by pid.
#pragma once

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/text.h"
#include "collector/sources/processes/proc_file.h"
#include "collector/sources/processes/process_table.h"
#include "collector/stacks/stack.h"

namespace ddpdoctor::sources {

/// Polls until `holds` returns true; false after a minute.
inline bool eventually(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) {
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// A forked child that runs a function and is killed with its process group at the end of the test.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ == 0) {
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      body();
      ::_exit(0);
    }
    ::setpgid(pid_, pid_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  Child(Child&&) = delete;
  Child& operator=(Child&&) = delete;
  ~Child() {
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const {
    return pid_;
  }

 private:
  pid_t pid_;
};

/// Runs a program; never returns.
inline void run(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  ::_exit(127);
}

/// The system call in which a thread sleeps, from /proc.
inline std::optional<stacks::Syscall> syscall_of(pid_t pid, pid_t tid) {
  const std::string text =
      read_file(fmt::format("/proc/{}/task/{}/syscall", pid, tid)).value_or("");
  const auto fields = words(text);
  if (fields.size() < 7) {
    return std::nullopt;
  }
  stacks::Syscall found;
  found.number = number<std::int64_t>(fields[0]).value_or(-1);
  for (std::size_t i = 0; i < found.arguments.size(); ++i) {
    found.arguments.at(i) = number<std::uint64_t>(fields[i + 1].substr(2), 16).value_or(0);
  }
  return found;
}

/// True if the thread sleeps in that system call.
inline bool sleeps_in(pid_t pid, std::int64_t call) {
  const auto found = syscall_of(pid, pid);
  return found && found->number == call;
}

/// True if the program "sleep" has started: exec sets the name before the environment can be read.
inline bool asleep(pid_t pid) {
  return sleeps_in(pid, SYS_clock_nanosleep) || sleeps_in(pid, SYS_nanosleep);
}

/// What a capture returns for a process, without frames.
inline stacks::ProcessStacks captured(pid_t pid) {
  stacks::ProcessStacks process;
  process.pid = pid;
  for (const int tid : numbered_entries(proc_path(pid, "task"))) {
    stacks::ThreadStack thread;
    thread.tid = tid;
    thread.inner_tid = tid;
    thread.state = 'S';
    thread.syscall = syscall_of(pid, tid);
    process.threads.push_back(thread);
  }
  return process;
}

/// A job of these processes: the first is rank 0, and so on.
inline JobTree job_of(const std::vector<pid_t>& pids) {
  JobTree job;
  for (const pid_t pid : pids) {
    JobProcess process;
    process.row = read_process(pid).value_or(ProcessRow{});
    complete(process.row);
    process.role = JobRole::kRank;
    process.rank = static_cast<int>(job.processes.size());
    job.processes.push_back(std::move(process));
  }
  return job;
}

/// A folder that is removed at the end of the test.
class Folder {
 public:
  Folder() {
    std::string name = "/tmp/ddpdoctor-test-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  Folder(Folder&&) = delete;
  Folder& operator=(Folder&&) = delete;
  ~Folder() {
    const std::string command = "rm -rf " + path_;
    [[maybe_unused]] const int status = std::system(command.c_str());
  }

  [[nodiscard]] std::string file(const std::string& name) const {
    return path_ + "/" + name;
  }
  [[nodiscard]] const std::string& path() const {
    return path_;
  }

 private:
  std::string path_;
};

inline void write_file(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  [[maybe_unused]] const ssize_t written = ::write(fd, text.data(), text.size());
  ::close(fd);
}

}  // namespace ddpdoctor::sources
