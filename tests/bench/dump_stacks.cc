// SPDX-License-Identifier: Apache-2.0
// A developer's program: dump_stacks [--no-stop] [--no-native] [--no-torch] [--quiet] PID… prints
// the stacks of the processes as text and, on stderr, what the capture cost.
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include "collector/stacks/capture.h"

namespace ddpdoctor::stacks {
namespace {

double cpu_ms() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

long peak_rss_mb() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

std::string_view method_name(CaptureMethod method) {
  switch (method) {
    case CaptureMethod::kNone:
      return "unread";
    case CaptureMethod::kNoStop:
      return "not stopped";
    case CaptureMethod::kStopped:
      return "stopped";
  }
  return "";
}

void print(const Frame& frame) {
  if (frame.language == Language::kPython) {
    fmt::print("    py {} ({}:{})\n", frame.function, frame.file, frame.line);
    for (const auto& [name, value] : frame.locals) {
      fmt::print("         {} = {}\n", name, value);
    }
  } else {
    fmt::print("    {:#014x} {} ({}){}\n", frame.address,
               frame.function.empty() ? "??" : frame.function, frame.module,
               frame.inferred ? " [inferred]" : "");
  }
}

void print(const ThreadStack& thread) {
  fmt::print("  thread {} ({}) \"{}\" {} {} {}{}{}", thread.tid, thread.inner_tid, thread.name,
             thread.state, thread.wchan, method_name(thread.method),
             thread.holds_gil.value_or(false) ? " [gil]" : "", thread.complete ? "" : " [partial]");
  if (!thread.python_name.empty()) {
    fmt::print(" python \"{}\"", thread.python_name);
  }
  if (thread.mutex_address) {
    fmt::print(" mutex {:#x} owner {}", *thread.mutex_address, thread.mutex_owner.value_or(0));
  }
  fmt::print("{}{}\n", thread.problem.empty() ? "" : " -- ", thread.problem);
  for (const Frame& frame : thread.frames) {
    print(frame);
  }
}

void print(const ProcessStacks& process) {
  fmt::print("process {} python {}\n", process.pid, process.python ? process.python->version : "-");
  for (const std::string& problem : process.problems) {
    fmt::print("  ! {}\n", problem);
  }
  if (process.python && !process.python->problem.empty()) {
    fmt::print("  ! {}\n", process.python->problem);
  }
  for (const ThreadStack& thread : process.threads) {
    print(thread);
  }
  if (process.torch) {
    fmt::print("  torch {} records {} groups {} {}\n", process.torch->version,
               process.torch->records.size(), process.torch->groups.size(), process.torch->problem);
  }
}

int dump(const std::vector<pid_t>& pids, const CaptureOptions& options, bool quiet) {
  const auto begin = std::chrono::steady_clock::now();
  const double cpu = cpu_ms();
  const auto processes = capture(pids, options);
  const double wall =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  std::size_t threads = 0;
  std::size_t frames = 0;
  std::size_t complete = 0;
  std::size_t stopped = 0;
  double longest = 0;
  for (const ProcessStacks& process : processes) {
    longest = std::max(longest, process.longest_stop_ms);
    for (const ThreadStack& thread : process.threads) {
      ++threads;
      frames += thread.frames.size();
      complete += thread.complete ? 1U : 0U;
      stopped += thread.method == CaptureMethod::kStopped ? 1U : 0U;
    }
    if (!quiet) {
      print(process);
    }
  }
  fmt::print(stderr,
             "processes {} threads {} complete {} stopped {} frames {} wall {:.1f} ms cpu {:.1f} "
             "ms peak {} MB "
             "longest stop {:.3f} ms\n",
             processes.size(), threads, complete, stopped, frames, wall, cpu_ms() - cpu,
             peak_rss_mb(), longest);
  return 0;
}

}  // namespace
}  // namespace ddpdoctor::stacks

int main(int argc, char** argv) {
  ddpdoctor::stacks::CaptureOptions options;
  std::vector<pid_t> pids;
  bool quiet = false;
  for (const std::string_view word : std::vector<std::string_view>(argv + 1, argv + argc)) {
    pid_t pid = 0;
    if (word == "--no-stop") {
      options.allow_stop = false;
    } else if (word == "--no-native") {
      options.native = false;
    } else if (word == "--no-torch") {
      options.torch_state = false;
    } else if (word == "--quiet") {
      quiet = true;
    } else if (std::from_chars(word.data(), word.data() + word.size(), pid).ec == std::errc{}) {
      pids.push_back(pid);
    } else {
      fmt::print(stderr,
                 "usage: dump_stacks [--no-stop] [--no-native] [--no-torch] [--quiet] PID...\n");
      return 2;
    }
  }
  return ddpdoctor::stacks::dump(pids, options, quiet);
}
