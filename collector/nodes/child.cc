// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/child.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/text.h"

namespace ddpdoctor::nodes {
namespace {

constexpr std::size_t kMostOutput = std::size_t{16} << 20U;
constexpr std::size_t kLongestSentence = 300;

/// Both ends of a pipe, the read end first.
base::Result<std::pair<base::UniqueFd, base::UniqueFd>> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return base::failure(fmt::format("no pipe: {}", std::strerror(errno)), "see ulimit -n");
  }
  return std::pair(base::UniqueFd(ends[0]), base::UniqueFd(ends[1]));
}

[[noreturn]] void become(const std::vector<char*>& words, std::array<int, 3> streams, int report) {
  ::setsid();
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ, SIGCHLD}) {
    ::signal(number, SIG_DFL);
  }
  for (int stream = 0; stream < 3; ++stream) {
    ::dup2(streams[static_cast<std::size_t>(stream)], stream);
  }
  ::execvp(words.front(), words.data());
  const int reason = errno;
  const ssize_t told = ::write(report, &reason, sizeof reason);
  ::_exit(told == sizeof reason ? 127 : 126);
}

base::Error cannot_start(const std::string& program, int reason) {
  const bool absent = reason == ENOENT;
  return {.what = fmt::format("{} {}", program,
                              absent ? "is not installed here, or not in PATH"
                                     : fmt::format("cannot be started: {}", std::strerror(reason))),
          .hint = {}};
}

}  // namespace

base::Result<Child> Child::start(const std::vector<std::string>& command) {
  auto [child_input, input] = TRY(make_pipe());
  auto [output, child_output] = TRY(make_pipe());
  auto [errors, child_errors] = TRY(make_pipe());
  auto [report, child_report] = TRY(make_pipe());
  std::vector<std::string> texts = command;
  std::vector<char*> words;
  for (std::string& text : texts) {
    words.push_back(text.data());
  }
  words.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    become(words, {child_input.get(), child_output.get(), child_errors.get()}, child_report.get());
  }
  if (pid < 0) {
    return base::failure(fmt::format("{}: cannot fork: {}", command.front(), std::strerror(errno)),
                         "see ulimit -u");
  }
  child_report.reset();
  Child child(pid, std::move(input), std::move(output), std::move(errors));
  int reason = 0;
  ssize_t told = 0;
  do {
    told = ::read(report.get(), &reason, sizeof reason);
  } while (told < 0 && errno == EINTR);
  if (told == sizeof reason) {
    return tl::make_unexpected(cannot_start(command.front(), reason));
  }
  for (const base::UniqueFd* stream : {&child.input_, &child.output_, &child.errors_}) {
    ::fcntl(stream->get(), F_SETFL, O_NONBLOCK);  // NOLINT(cppcoreguidelines-pro-type-vararg)
  }
  return child;
}

Child::Child(pid_t pid, base::UniqueFd input, base::UniqueFd output, base::UniqueFd errors)
    : pid_(pid), input_(std::move(input)), output_(std::move(output)), errors_(std::move(errors)) {}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)),
      status_(other.status_),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)) {}

Child::~Child() {
  if (pid_ > 0 && !status_) {
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

std::size_t Child::write(std::string_view text) const {
  const ssize_t written = input_ ? ::write(input_.get(), text.data(), text.size()) : 0;
  return written > 0 ? static_cast<std::size_t>(written) : 0;
}

std::optional<int> Child::ended() {
  int status = 0;
  if (!status_ && pid_ > 0 && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = status;
  }
  return status_;
}

void Child::signal(int number) const {
  if (pid_ > 0 && !status_) {
    ::kill(-pid_, number);
    ::kill(pid_, number);
  }
}

int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string last_line(std::string_view text) {
  std::string_view last;
  for (const std::string_view line : base::split(text, '\n')) {
    last = base::trim(line).empty() ? last : base::trim(line);
  }
  return base::elide(base::printable(last), kLongestSentence);
}

base::Result<Finished> run_program(const std::vector<std::string>& command,
                                   std::chrono::milliseconds limit) {
  Child child = TRY(Child::start(command));
  child.close_input();
  Finished out;
  const auto until = std::chrono::steady_clock::now() + limit;
  std::array<std::pair<int, std::string*>, 2> streams{
      {{child.output(), &out.output}, {child.errors(), &out.errors}}};
  while (streams[0].first >= 0 || streams[1].first >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    std::array<pollfd, 2> polled{{{.fd = streams[0].first, .events = POLLIN, .revents = 0},
                                  {.fd = streams[1].first, .events = POLLIN, .revents = 0}}};
    if (left.count() <= 0 ||
        ::poll(polled.data(), polled.size(), static_cast<int>(left.count())) == 0) {
      return base::failure(fmt::format("{} did not answer within {}", command.front(),
                                       base::duration(static_cast<double>(limit.count()) / 1000)));
    }
    for (std::size_t i = 0; i < polled.size(); ++i) {
      std::array<char, 65536> buffer{};
      if (polled[i].revents == 0) {
        continue;
      }
      const ssize_t got = ::read(polled[i].fd, buffer.data(), buffer.size());
      if (got > 0 && streams[i].second->size() < kMostOutput) {
        streams[i].second->append(buffer.data(), static_cast<std::size_t>(got));
      } else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        streams[i].first = -1;
      }
    }
  }
  while (!child.ended()) {
    if (std::chrono::steady_clock::now() > until) {
      return base::failure(fmt::format("{} does not end", command.front()));
    }
    ::poll(nullptr, 0, 5);
  }
  out.status = status_of(*child.ended());
  return out;
}

}  // namespace ddpdoctor::nodes
