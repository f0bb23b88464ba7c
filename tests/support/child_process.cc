// SPDX-License-Identifier: Apache-2.0
#include "tests/support/child_process.h"

#include <array>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <set>
#include <signal.h>
#include <sstream>
#include <unistd.h>

#include <sys/wait.h>

namespace ddpdoctor::test {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(60);

[[noreturn]] void become(const std::vector<std::string>& argv, int input, int output, bool quiet) {
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  if (quiet) {
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDERR_FILENO);
  }
  std::vector<char*> words;
  for (const std::string& word : argv) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  ::_exit(127);
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// True if the process ended before the deadline.
bool ends_within(pid_t pid, std::chrono::milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  while (::waitpid(pid, nullptr, WNOHANG) == 0) {
    if (Clock::now() > end) {
      return false;
    }
    ::usleep(2000);
  }
  return true;
}

/// How often each thread has been scheduled; nothing unless all threads sleep, one of them in this
/// system call.
std::optional<std::vector<std::string>> turns_of_sleepers(pid_t pid, long system_call) {
  std::error_code gone;
  bool found = false;
  std::vector<std::string> turns;
  const std::filesystem::path tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    const std::string stat = first_line(task.path() / "stat");
    const std::size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos || stat.compare(name_end, 4, ") S ") != 0) {
      return std::nullopt;
    }
    found =
        found || first_line(task.path() / "syscall").starts_with(std::to_string(system_call) + " ");
    turns.push_back(first_line(task.path() / "schedstat"));
  }
  return found ? std::optional(turns) : std::nullopt;
}

void add_interpreter(const std::string& command, std::set<std::string>& seen,
                     std::vector<PythonInstallation>& found) {
  const auto told =
      output_of({command, "-c",
                 "import os, sys; print(sys.version_info[1], sys.implementation.name, "
                 "os.path.realpath(sys.executable), sep='\\t')"});
  if (!told) {
    return;
  }
  const std::size_t tab = told->find('\t');
  const std::size_t second = told->find('\t', tab + 1);
  if (second == std::string::npos || told->substr(tab + 1, second - tab - 1) != "cpython") {
    return;
  }
  const int minor = std::atoi(told->c_str());
  if (seen.insert(told->substr(second + 1)).second) {
    found.push_back({.command = command, .minor = minor});
  }
}

/// Files of that name on PATH and in pyenv's versions; not pyenv's shims, which are slow and start
/// the same programs.
std::vector<std::string> commands_named(const std::string& name) {
  std::vector<std::filesystem::path> folders;
  const char* const path = std::getenv("PATH");
  std::istringstream parts(path != nullptr ? path : "/usr/bin");
  for (std::string folder; std::getline(parts, folder, ':');) {
    if (!folder.ends_with("/shims")) {
      folders.emplace_back(folder);
    }
  }
  const char* const set = std::getenv("PYENV_ROOT");
  std::string root = set != nullptr ? set : output_of({"pyenv", "root"}).value_or("");
  root.resize(root.find_last_not_of('\n') + 1);
  std::error_code error;
  for (const auto& version : std::filesystem::directory_iterator(root + "/versions", error)) {
    folders.push_back(version.path() / "bin");
  }
  std::vector<std::string> commands;
  for (const auto& folder : folders) {
    if (std::filesystem::exists(folder / name, error)) {
      commands.push_back((folder / name).string());
    }
  }
  return commands;
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& argv, bool quiet) {
  std::array<int, 2> to_child{};
  std::array<int, 2> from_child{};
  if (::pipe2(to_child.data(), O_CLOEXEC) != 0 || ::pipe2(from_child.data(), O_CLOEXEC) != 0) {
    return;
  }
  pid_ = ::fork();
  if (pid_ == 0) {
    become(argv, to_child[0], from_child[1], quiet);
  }
  ::close(to_child[0]);
  ::close(from_child[1]);
  input_ = to_child[1];
  output_ = from_child[0];
}

ChildProcess::~ChildProcess() {
  ::close(input_);
  if (pid_ > 0 && !ends_within(pid_, std::chrono::seconds(5))) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  ::close(output_);
}

std::optional<std::string> ChildProcess::line(std::chrono::milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  while (true) {
    if (const std::size_t found = buffer_.find('\n'); found != std::string::npos) {
      std::string line = buffer_.substr(0, found);
      buffer_.erase(0, found + 1);
      return line;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd wanted{.fd = output_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&wanted, 1, static_cast<int>(left.count())) <= 0) {
      return std::nullopt;
    }
    std::array<char, 65536> chunk{};
    const ssize_t count = ::read(output_, chunk.data(), chunk.size());
    if (count <= 0) {
      return std::nullopt;
    }
    buffer_.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

std::optional<std::vector<std::string>> ChildProcess::lines_until(const std::string& last) {
  std::vector<std::string> lines;
  while (auto next = line()) {
    if (*next == last) {
      return lines;
    }
    lines.push_back(std::move(*next));
  }
  return std::nullopt;
}

bool ChildProcess::rests_in(long system_call) const {
  return eventually([&] { return test::rests_in(pid_, system_call); });
}

bool rests_in(pid_t pid, long system_call) {
  const auto before = turns_of_sleepers(pid, system_call);
  return before && turns_of_sleepers(pid, system_call) == before;
}

bool eventually(const std::function<bool()>& holds) {
  const auto end = Clock::now() + kPatience;
  while (!holds()) {
    if (Clock::now() > end) {
      return false;
    }
    ::usleep(2000);
  }
  return true;
}

std::optional<std::string> output_of(const std::vector<std::string>& argv) {
  std::array<int, 2> from_child{};
  if (::pipe2(from_child.data(), O_CLOEXEC) != 0) {
    return std::nullopt;
  }
  const pid_t pid = ::fork();
  if (pid == 0) {
    become(argv, ::open("/dev/null", O_RDONLY | O_CLOEXEC), from_child[1], true);
  }
  ::close(from_child[1]);
  std::string text;
  std::array<char, 4096> chunk{};
  for (ssize_t count = 0; (count = ::read(from_child[0], chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(count));
  }
  ::close(from_child[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return status == 0 ? std::optional(text) : std::nullopt;
}

std::vector<PythonInstallation> python_installations(int minor) {
  const std::string name = "python3." + std::to_string(minor);
  std::set<std::string> seen;
  std::vector<PythonInstallation> found;
  const char* const named = std::getenv("DDPDOCTOR_TEST_PYTHONS");
  std::string rest = named != nullptr ? named : "";
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    add_interpreter(rest.substr(0, colon), seen, found);
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
  }
  for (const std::string& command : commands_named(name)) {
    add_interpreter(command, seen, found);
  }
  std::erase_if(found, [minor](const PythonInstallation& one) { return one.minor != minor; });
  return found;
}

}  // namespace ddpdoctor::test
