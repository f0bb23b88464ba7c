// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/respond.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <poll.h>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>

#include "base/host_name.h"
#include "base/text.h"
#include "collector/nodes/conversation.h"
#include "collector/nodes/messages.h"
#include "collector/recording/recording.h"

namespace ddpdoctor::nodes {
namespace {

constexpr std::size_t kMostListed = 6;
constexpr double kLongestDelay = 10;  // seconds

bool put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    text.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
  return true;
}

bool put_problem(const std::string& session, const base::Error& error) {
  put(message_line(session, "problem", {error.what, error.hint}));
  return false;
}

std::string clock_text() {
  return fmt::format("{:.6f}", now_seconds());
}

double number_after(std::string_view line, std::string_view word) {
  double value = 0;
  const std::string_view text = base::trim(line.substr(word.size()));
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::isfinite(value) ? std::clamp(value, 0.0, kLongestDelay) : 0;
}

/// Answers clock queries until a snapshot is requested, the asker disconnects, or the time limit is
/// reached.
void wait_for_word(const RespondOptions& options) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.wait);
  Lines lines;
  bool told = false;
  const auto hear = [&](std::string_view line) {
    constexpr std::string_view kPing = "ping ";
    constexpr std::string_view kGo = "go ";
    if (line.starts_with(kPing)) {
      put(message_line(options.session, "pong",
                       {std::string(base::trim(line.substr(kPing.size()))), clock_text()}));
    } else if (line.starts_with(kGo) && !told) {
      told = true;
      std::this_thread::sleep_for(std::chrono::duration<double>(number_after(line, kGo)));
    }
  };
  while (!told) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&input, 1, static_cast<int>(left.count())) == 0) {
      return;
    }
    std::array<char, 4096> buffer{};
    const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
      return;
    }
    if (got > 0) {
      lines.feed(std::string_view(buffer.data(), static_cast<std::size_t>(got)), hear);
    }
  }
}

base::Error no_job(const monitor::JobFilter& filter) {
  const std::string which = filter.variable.empty() ? "" : " with " + filter.variable;
  const std::string named = filter.text.empty() ? "" : fmt::format(" named by \"{}\"", filter.text);
  return {.what = fmt::format("no PyTorch job{}{} runs there", which, named),
          .hint = ::geteuid() == 0
                      ? ""
                      : "jobs of other users are seen by root and by these users only"};
}

base::Error several_jobs(const std::vector<monitor::JobHere>& jobs) {
  std::string list;
  for (std::size_t i = 0; i < std::min(jobs.size(), kMostListed); ++i) {
    const monitor::JobHere& job = jobs[i];
    list += fmt::format("{}{} (pid {}, {} rank{}{}{})", i == 0 ? "" : "; ", job.command, job.pid,
                        job.ranks, job.ranks == 1 ? "" : "s", job.text.empty() ? "" : ", at ",
                        job.text);
  }
  return {.what = fmt::format("{} jobs run there: {}{}", jobs.size(), list,
                              jobs.size() > kMostListed ? "; …" : ""),
          .hint = "choose one with --job TEXT, a part of its command or of its address"};
}

}  // namespace

bool respond(const RespondOptions& options) {
  ::alarm(static_cast<unsigned>(std::ceil(std::max(options.limit, 1.0))));
  const std::string& session = options.session;
  monitor::JobFilter filter = options.filter;
  filter.except = session;
  const std::vector<monitor::JobHere> jobs = monitor::jobs_here(filter);
  if (jobs.size() != 1) {
    return put_problem(session, jobs.empty() ? no_job(filter) : several_jobs(jobs));
  }
  const monitor::JobHere& job = jobs.front();
  if (!put(message_line(session, "hello", {clock_text(), base::host_name(), job.text}))) {
    return false;
  }
  wait_for_word(options);
  put(message_line(session, "began", {clock_text()}));
  auto seen = monitor::observe(job.pid, options.observe);
  if (!seen) {
    return put_problem(session, seen.error());
  }
  return put(data_lines(session, recording::save(*seen)));
}

}  // namespace ddpdoctor::nodes
