// SPDX-License-Identifier: Apache-2.0
#include "cli/hang_command.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <spawn.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <sys/wait.h>

namespace ddpdoctor::cli {
namespace {

// Limit for the command, because the job is not watched while it runs.
constexpr auto kLongestCommand = std::chrono::seconds(60);
constexpr auto kPoll = std::chrono::milliseconds(20);

/// Our environment plus the folder.
std::vector<std::string> environment_with(const std::string& report_dir) {
  constexpr std::string_view kName = "DDPDOCTOR_REPORT_DIR=";
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(kName)) {
      out.emplace_back(*entry);
    }
  }
  std::error_code error;
  const auto absolute = std::filesystem::absolute(report_dir, error);
  out.push_back(std::string(kName) + (error ? report_dir : absolute.string()));
  return out;
}

/// Returns 0 and the pid, or an errno. The child has no blocked signals, unlike this process.
int spawn_shell(const std::string& command, const std::string& report_dir, pid_t& pid) {
  std::string shell = "sh";
  std::string option = "-c";
  std::string text = command;
  std::vector<char*> arguments{shell.data(), option.data(), text.data(), nullptr};
  std::vector<std::string> environment = environment_with(report_dir);
  std::vector<char*> pointers;
  for (std::string& entry : environment) {
    pointers.push_back(entry.data());
  }
  pointers.push_back(nullptr);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  const int error =
      ::posix_spawn(&pid, "/bin/sh", nullptr, &attributes, arguments.data(), pointers.data());
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

base::Result<void> run_hang_command(const std::string& command, const std::string& report_dir) {
  pid_t pid = 0;
  if (const int error = spawn_shell(command, report_dir, pid); error != 0) {
    return base::failure(fmt::format("--on-hang-exec cannot be started: {}", std::strerror(error)));
  }
  const auto deadline = std::chrono::steady_clock::now() + kLongestCommand;
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return base::failure(
          "--on-hang-exec is still running after a minute: ddpdoctor no longer waits for it");
    }
    std::this_thread::sleep_for(kPoll);
  }
  if (ended == pid && WIFEXITED(status) && WEXITSTATUS(status) != 0) {
    return base::failure(fmt::format("--on-hang-exec ended with status {}", WEXITSTATUS(status)));
  }
  if (ended == pid && WIFSIGNALED(status)) {
    return base::failure(fmt::format("--on-hang-exec was ended by signal {}", WTERMSIG(status)));
  }
  return {};
}

}  // namespace ddpdoctor::cli
