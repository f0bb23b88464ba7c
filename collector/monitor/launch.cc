// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/launch.h"

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/unique_fd.h"
#include "wire/names.h"

namespace ddpdoctor::monitor {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

/// Our environment with the agent last in LD_PRELOAD: earlier preloads stay, and a sanitizer's
/// runtime must be first to start.
std::vector<std::string> environment(const LaunchOptions& options) {
  constexpr std::string_view kPreload = "LD_PRELOAD=";
  const std::string spool_key = std::string(wire::kSpoolVariable) + "=";
  std::string preload;
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.starts_with(kPreload)) {
      preload =
          text.size() > kPreload.size() ? std::string(text.substr(kPreload.size())) + ":" : "";
    } else if (!text.starts_with(spool_key)) {
      result.emplace_back(text);
    }
  }
  if (!options.agent.empty()) {
    result.push_back(std::string(kPreload) + preload + options.agent);
    result.push_back(spool_key + options.spool);
  }
  return result;
}

[[noreturn]] void become(std::vector<std::string> command, std::vector<std::string> variables,
                         int report) {
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ, SIGCHLD}) {
    ::signal(number, SIG_DFL);
  }
  const std::vector<char*> arguments = pointers(command);
  const std::vector<char*> entries = pointers(variables);
  ::execvpe(arguments.front(), arguments.data(), entries.data());
  const int reason = errno;
  const ssize_t told = ::write(report, &reason, sizeof reason);
  ::_exit(told == sizeof reason && reason != ENOENT ? 126 : 127);
}

}  // namespace

tl::expected<pid_t, LaunchError> launch(const LaunchOptions& options) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return tl::make_unexpected(
        LaunchError{.error = {.what = fmt::format("{}: no pipe: {}", options.command.front(),
                                                  std::strerror(errno)),
                              .hint = {}}});
  }
  base::UniqueFd from_child(ends[0]);
  base::UniqueFd to_parent(ends[1]);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::vector<std::string> variables = environment(options);
  const pid_t child = ::fork();
  if (child == 0) {
    become(options.command, std::move(variables), to_parent.get());
  }
  if (child < 0) {
    return tl::make_unexpected(
        LaunchError{.error = {.what = fmt::format("{}: cannot fork: {}", options.command.front(),
                                                  std::strerror(errno)),
                              .hint = "see ulimit -u"},
                    .status = 126});
  }
  to_parent.reset();
  int reason = 0;
  ssize_t told = 0;
  do {
    told = ::read(from_child.get(), &reason, sizeof reason);
  } while (told < 0 && errno == EINTR);
  if (told == sizeof reason) {
    ::waitpid(child, nullptr, 0);
    const bool absent = reason == ENOENT;
    return tl::make_unexpected(LaunchError{
        .error = {.what = fmt::format("{}: {}", options.command.front(),
                                      absent ? "no such program" : std::strerror(reason)),
                  .hint = absent ? "is it spelled right, and in PATH?" : "is it executable?"},
        .status = absent ? 127 : 126});
  }
  return child;
}

std::string find_agent() {
  std::array<char, PATH_MAX> self{};
  const ssize_t length = ::readlink("/proc/self/exe", self.data(), self.size() - 1);
  if (length <= 0) {
    return {};
  }
  const std::string program(self.data(), static_cast<std::size_t>(length));
  const std::string folder = program.substr(0, program.rfind('/'));
  for (const char* const place :
       {"/libddpdoctor_agent.so", "/../lib/ddpdoctor/libddpdoctor_agent.so",
        "/../libexec/ddpdoctor/libddpdoctor_agent.so"}) {
    std::array<char, PATH_MAX> real{};
    if (::realpath((folder + place).c_str(), real.data()) != nullptr) {
      return real.data();
    }
  }
  return {};
}

}  // namespace ddpdoctor::monitor
