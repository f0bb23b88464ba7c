// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/kernel_stacks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostStacks = 4096;
constexpr std::size_t kMostFramesOfKernel = 64;
constexpr std::size_t kLongestSymbol = 128;
constexpr std::size_t kHeadingAbove = 3;  // lines between the command and its output

/// What follows "[<0>] ": kernels before 4.11 print addresses between the brackets, later ones 0.
/// Empty for other lines.
std::string_view behind_address(std::string_view line) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  line = base::trim(line);
  if (!take_prefix(line, "[<")) {
    return {};
  }
  const std::size_t close = std::min(line.find_first_not_of(kDigits), line.size());
  std::string_view rest = line.substr(close);
  return close > 0 && take_prefix(rest, ">] ") ? rest : std::string_view();
}

struct Whose {
  pid_t pid = 0;  // 0: the line has no such path
  pid_t tid = 0;
};

/// "/proc/7/stack" and "/proc/7/task/9/stack".
Whose whose_path(std::string_view line, std::string_view file) {
  constexpr std::string_view kProc = "/proc/";
  for (std::size_t at = line.find(kProc); at != line.npos; at = line.find(kProc, at + 1)) {
    std::string_view rest = line.substr(at + kProc.size());
    const auto pid = take_number(rest, INT32_MAX);
    auto tid = pid;
    if (pid && take_prefix(rest, "/task/")) {
      tid = take_number(rest, INT32_MAX);
    }
    if (pid && tid && take_prefix(rest, file)) {
      return {.pid = static_cast<pid_t>(*pid), .tid = static_cast<pid_t>(*tid)};
    }
  }
  return {};
}

/// "== 1533", "--- PID 1533:": a line of a loop over processes, directly above a stack.
Whose whose_title(std::span<const std::string_view> lines, std::size_t at) {
  const bool above = at + 1 < lines.size() && is_kernel_frame(lines[at + 1]);
  std::string_view line = above ? base::trim(lines[at]) : std::string_view();
  line.remove_prefix(std::min(line.find_first_not_of("=-#*> "), line.size()));
  for (const std::string_view word : {"Process ", "process ", "PID", "pid"}) {
    take_prefix(line, word);
  }
  line.remove_prefix(std::min(line.find_first_not_of("=: "), line.size()));
  const auto pid = take_number(line, INT32_MAX);
  const bool alone = pid && *pid > 0 && line.find_first_not_of("=-#*<: ") == line.npos;
  return alone ? Whose{.pid = static_cast<pid_t>(*pid), .tid = static_cast<pid_t>(*pid)} : Whose{};
}

/// Of /proc/PID/status: "State:\tD (disk sleep)" and "Pid:\t7".
std::map<pid_t, char> states_in(std::span<const std::string_view> lines) {
  std::map<pid_t, char> out;
  char state = '?';
  for (std::string_view line : lines) {
    if (take_prefix(line, "State:")) {
      line = base::trim(line);
      state = line.empty() ? '?' : line.front();
    } else if (take_prefix(line, "Pid:") && state != '?') {
      if (const auto pid = pid_of(base::trim(line))) {
        out[*pid] = std::exchange(state, '?');
      }
    }
  }
  return out;
}

/// The frames at `at`, behind which it is put.
KernelStack take_stack(std::span<const std::string_view> lines, std::size_t& at) {
  KernelStack out;
  while (at < lines.size() && out.take(behind_address(lines[at]))) {
    ++at;
  }
  return out;
}

}  // namespace

bool is_kernel_frame(std::string_view line) {
  return KernelStack().take(behind_address(line));
}

bool KernelStack::take(std::string_view symbol) {
  const std::size_t plus = symbol.find("+0x");
  if (plus == symbol.npos || plus == 0 || symbol.find(' ') < plus) {
    return false;
  }
  if (functions.size() < kMostFramesOfKernel) {
    functions.push_back(base::elide(base::printable(symbol.substr(0, plus)), kLongestSymbol));
    modules.push_back(
        base::elide(base::printable(between(symbol, " [", "]").value_or("")), kLongestSymbol));
  }
  return true;
}

model::Fact KernelStack::fact(pid_t pid) && {
  model::Fact out{.rank = {}, .pid = {}, .kind = "kernel-stack", .fields = {}};
  if (pid != 0) {
    out.pid = pid;
  }
  out.fields["functions"] = std::move(functions);
  out.fields["modules"] = std::move(modules);
  return out;
}

void read_kernel_stacks(std::span<const std::string_view> lines, model::JobModel& job) {
  std::vector<model::Fact> stacks;
  Whose whose;
  std::size_t named_at = 0;
  for (std::size_t at = 0; at < lines.size() && stacks.size() < kMostStacks;) {
    Whose named = whose_path(lines[at], "/stack");
    named = named.pid == 0 ? whose_title(lines, at) : named;
    whose = named.pid != 0 ? named : whose;
    named_at = named.pid != 0 ? at : named_at;
    const std::size_t start = at;
    KernelStack stack = take_stack(lines, at);
    if (stack.functions.empty()) {
      ++at;
      continue;
    }
    const bool named_above = whose.pid != 0 && start - named_at <= kHeadingAbove;
    stacks.push_back(std::move(stack).fact(named_above ? whose.pid : 0));
    if (named_above) {
      stacks.back().fields["tid"] = std::int64_t{whose.tid};
    }
    whose = {};
  }
  const auto states = stacks.empty() ? std::map<pid_t, char>() : states_in(lines);
  for (model::Fact& stack : stacks) {
    const auto state = states.find(stack.pid.value_or(0));
    if (state != states.end()) {
      stack.fields["state"] = std::string(1, state->second);
    }
    job.facts.push_back(std::move(stack));
  }
}

}  // namespace ddpdoctor::imports
