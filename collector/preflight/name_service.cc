// SPDX-License-Identifier: Apache-2.0
#include "collector/preflight/name_service.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <string_view>
#include <unistd.h>

#include <sys/wait.h>

#include "base/unique_fd.h"

namespace ddpdoctor::preflight {
namespace {

constexpr std::size_t kMostBytes = 64 * 1024;
constexpr int kNotFound = 2;  // getent's exit status for an unknown name

/// Reads the pipe until its end or until the deadline.
std::string read_until(int descriptor, std::chrono::steady_clock::time_point deadline) {
  std::string out;
  std::array<char, 4096> bytes{};
  while (out.size() < kMostBytes) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd ready{.fd = descriptor, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) {
      break;
    }
    const ssize_t got = ::read(descriptor, bytes.data(), bytes.size());
    if (got <= 0) {
      break;
    }
    out.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return out;
}

}  // namespace

Names ask_getent(const std::string& name, std::chrono::milliseconds patience) {
  Names out;
  std::array<int, 2> ends{};
  if (name.starts_with('-') || ::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return out;
  }
  const base::UniqueFd reading(ends[0]);
  base::UniqueFd writing(ends[1]);
  posix_spawn_file_actions_t actions{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::array<char*, 4> words{const_cast<char*>("getent"), const_cast<char*>("ahosts"),
                             const_cast<char*>(name.c_str()), nullptr};
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, "getent", &actions, nullptr, words.data(), ::environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return out;
  }
  writing = base::UniqueFd();
  std::string said = read_until(reading.get(), std::chrono::steady_clock::now() + patience);
  ::kill(child, SIGKILL);  // it has exited, or the deadline has passed
  int status = 0;
  ::waitpid(child, &status, 0);
  for (std::string_view rest = said; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::string address(line.substr(0, line.find(' ')));
    if (!address.empty() && (out.addresses.empty() || out.addresses.back() != address)) {
      out.addresses.push_back(address);
    }
  }
  out.asked = !out.addresses.empty() || (WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
  return out;
}

}  // namespace ddpdoctor::preflight
