// SPDX-License-Identifier: Apache-2.0
#include "collector/preflight/survey.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/text.h"
#include "base/unique_fd.h"

namespace ddpdoctor::preflight {

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kOk:
      return "ok";
    case Level::kUnknown:
      return "unknown";
    case Level::kWarning:
      return "warning";
    case Level::kBreaks:
      return "breaks";
  }
  return "unknown";
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kField = '\x1f';   // between level, what and fix
constexpr char kRecord = '\x1e';  // after each remark; printable text contains neither
constexpr std::size_t kMostAnswer = std::size_t{256} * 1024;
constexpr std::size_t kMostText = 1000;  // bytes of one sentence

std::string told(const Remarks& remarks) {
  std::string out;
  for (const Remark& remark : remarks) {
    out += fmt::format("{}{}{}{}{}{}", static_cast<int>(remark.level), kField,
                       base::elide(base::printable(remark.what), kMostText), kField,
                       base::elide(base::printable(remark.fix), kMostText), kRecord);
  }
  return out;
}

Remarks heard(std::string_view text) {
  Remarks remarks;
  for (const std::string_view record : base::split(text, kRecord)) {
    const auto fields = base::split(record, kField);
    if (fields.size() == 3 && fields[0].size() == 1 && fields[0][0] >= '0' && fields[0][0] <= '3') {
      remarks.push_back({.level = static_cast<Level>(fields[0][0] - '0'),
                         .what = std::string(fields[1]),
                         .fix = std::string(fields[2])});
    }
  }
  return remarks;
}

/// A check that runs in a child process.
struct Running {
  pid_t child = -1;
  base::UniqueFd answer{};
  std::string text{};
  bool complete = false;
};

[[noreturn]] void look_in_child(const Check& check, const Setting& setting, int answer) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::string text = told(check.look(setting));
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t done = ::write(answer, text.data() + sent, text.size() - sent);
    if (done <= 0) {
      ::_exit(1);
    }
    sent += static_cast<std::size_t>(done);
  }
  ::_exit(0);
}

Running start(const Check& check, const Setting& setting) {
  Running running;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return running;
  }
  running.answer.reset(ends[0]);
  const base::UniqueFd to_us(ends[1]);
  running.child = ::fork();
  if (running.child == 0) {
    look_in_child(check, setting, to_us.get());
  }
  return running;
}

/// Reads what has arrived; closes the pipe at its end.
void take(Running& running) {
  std::array<char, 4096> buffer{};
  const ssize_t count = ::read(running.answer.get(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) {
    return;
  }
  if (count <= 0 || running.text.size() > kMostAnswer) {
    running.complete = count == 0;
    running.answer.reset();
    return;
  }
  running.text.append(buffer.data(), static_cast<std::size_t>(count));
}

void listen(std::vector<Running>& all, Clock::time_point end) {
  while (true) {
    std::vector<pollfd> waiting;
    std::vector<Running*> owners;
    for (Running& running : all) {
      if (running.answer) {
        waiting.push_back({.fd = running.answer.get(), .events = POLLIN, .revents = 0});
        owners.push_back(&running);
      }
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (waiting.empty() || left.count() <= 0) {
      return;
    }
    if (::poll(waiting.data(), waiting.size(), static_cast<int>(left.count())) <= 0) {
      continue;
    }
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) {
        take(*owners[i]);
      }
    }
  }
}

/// Ends the child and returns its result. A child in uninterruptible sleep is left running.
Remarks conclude(Running& running, std::chrono::milliseconds patience) {
  if (running.child <= 0) {
    return {{.level = Level::kUnknown,
             .what = "could not be checked: no process could be started",
             .fix = {}}};
  }
  int status = 0;
  if (running.complete) {
    ::waitpid(running.child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      return heard(running.text);
    }
    return {{.level = Level::kUnknown,
             .what = fmt::format("not checked: the check was ended by {}",
                                 WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status)) : "an error"),
             .fix = {}}};
  }
  ::kill(running.child, SIGKILL);
  ::waitpid(running.child, &status, WNOHANG);
  return {
      {.level = Level::kUnknown,
       .what = fmt::format("no answer within {} s", static_cast<double>(patience.count()) / 1e3),
       .fix = {}}};
}

}  // namespace

std::vector<Answer> survey(std::span<const Check* const> asked, const Setting& setting,
                           std::chrono::milliseconds patience) {
  std::vector<Running> running;
  running.reserve(asked.size());
  for (const Check* check : asked) {
    running.push_back(start(*check, setting));
  }
  listen(running, Clock::now() + patience);
  std::vector<Answer> answers;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    answers.push_back({.check = asked[i], .remarks = conclude(running[i], patience)});
  }
  return answers;
}

bool will_break(const std::vector<Answer>& answers) {
  return std::any_of(answers.begin(), answers.end(), [](const Answer& answer) {
    return std::any_of(answer.remarks.begin(), answer.remarks.end(),
                       [](const Remark& remark) { return remark.level == Level::kBreaks; });
  });
}

}  // namespace ddpdoctor::preflight
