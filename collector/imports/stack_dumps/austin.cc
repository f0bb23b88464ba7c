// SPDX-License-Identifier: Apache-2.0
// Samples of austin (2.0 – 3.7) in its text form: a line for each stack of a thread, outermost
// frame first, with the time spent in it. Of each thread the stack with the most time is taken; a
// thread that spent a part of its time elsewhere runs.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_readers.h"

namespace ddpdoctor::imports {
namespace {

using std::string_view;

/// Share of the time of a thread that stays at its line; a sampler also sees where it came from.
constexpr double kStays = 0.9;

struct Sample {
  pid_t pid = 0;
  string_view thread;  // "0:20441", "20441", "0x7f26f71336c0"
  string_view stack;   // frames
  double time = 0;     // microseconds, samples or bytes
};

/// "/srv/train.py:main:70".
std::optional<model::Frame> sampled_frame(string_view text) {
  const std::size_t line = text.rfind(':');
  const std::size_t function =
      line == text.npos || line == 0 ? text.npos : text.rfind(':', line - 1);
  if (function == text.npos) {
    return std::nullopt;
  }
  const auto number = number_of(text.substr(line + 1), kMaxLine);
  if (!number) {
    return std::nullopt;
  }
  model::Frame frame;
  frame.language = model::Language::kPython;
  frame.file = base::elide(text.substr(0, function), kLongestName);
  frame.function = base::elide(text.substr(function + 1, line - function - 1), kLongestName);
  frame.line = static_cast<int>(*number);
  return frame;
}

/// "P20441;T0:20441;/srv/train.py:main:70;… 4999312".
std::optional<Sample> sample_in(string_view line) {
  Sample out;
  const std::size_t end = line.rfind(' ');
  if (!take_prefix(line, "P") || end == line.npos || end == 0) {
    return std::nullopt;
  }
  string_view rest = line.substr(0, end - 1);  // "P" is taken
  string_view metric = line.substr(end);
  const std::size_t thread = rest.find(";T");
  const auto pid = thread == rest.npos ? std::nullopt : pid_of(rest.substr(0, thread));
  const auto time = take_number(metric, kMaxNumber);
  if (!pid || !time) {
    return std::nullopt;
  }
  rest = rest.substr(thread + 2);
  const std::size_t stack = rest.find(';');
  if (stack == rest.npos || !sampled_frame(rest.substr(rest.rfind(';') + 1))) {
    return std::nullopt;
  }
  out.pid = *pid;
  out.thread = rest.substr(0, stack);
  out.stack = rest.substr(stack + 1);
  out.time = static_cast<double>(*time);
  return out;
}

/// The kernel's number of "0:20441" and "20441"; 0 = unknown.
pid_t thread_number(string_view thread) {
  const std::size_t colon = thread.find(':');
  return pid_of(colon == thread.npos ? thread : thread.substr(colon + 1)).value_or(0);
}

using Times = std::map<string_view, double>;  // by stack

void add_sampled_thread(string_view name, const Times& times, StackDump& dump) {
  double sum = 0;
  auto most = times.begin();
  for (auto at = times.begin(); at != times.end(); ++at) {
    sum += at->second;
    most = at->second > most->second ? at : most;
  }
  model::Thread* thread = add_thread(dump, thread_number(name), {});
  if (thread == nullptr) {
    return;
  }
  thread->state = most->second < kStays * sum ? 'R' : thread->state;
  for (const string_view part : base::split(most->first, ';')) {
    if (auto frame = sampled_frame(part)) {
      add_frame(*thread, std::move(*frame));
    }
  }
  std::reverse(thread->frames.begin(), thread->frames.end());
}

}  // namespace

bool is_austin_sample(string_view line) {
  return sample_in(line).has_value();
}

bool read_austin(Lines& lines, std::vector<StackDump>& out) {
  std::map<pid_t, std::map<string_view, Times>> processes;
  while (!lines.done() && out.size() < kMostDumps) {
    const auto sample = sample_in(lines.peek());
    if (!sample &&
        (processes.empty() || !(lines.peek().empty() || lines.peek().starts_with('#')))) {
      break;
    }
    if (sample) {
      processes[sample->pid][sample->thread][sample->stack] += sample->time;
    }
    lines.take();
  }
  for (const auto& [pid, threads] : processes) {
    StackDump dump = new_dump();
    dump.process.pid = pid;
    for (const auto& [name, times] : threads) {
      add_sampled_thread(name, times, dump);
    }
    put_main_first(dump);
    out.push_back(std::move(dump));
  }
  return !processes.empty();
}

}  // namespace ddpdoctor::imports
