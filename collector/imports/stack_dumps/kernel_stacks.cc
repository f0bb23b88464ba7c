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

struct KernelFrame {
  std::string function;
  std::string module;  // empty: built into the kernel
};

/// Kernels before 4.11 print addresses between the brackets, later ones 0.
std::optional<KernelFrame> kernel_frame(std::string_view line) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::string_view kEnd = ">] ";
  line = base::trim(line);
  if (!take_prefix(line, "[<")) {
    return std::nullopt;
  }
  const std::size_t close = std::min(line.find_first_not_of(kDigits), line.size());
  std::string_view rest = line.substr(close);
  if (close == 0 || !take_prefix(rest, kEnd)) {
    return std::nullopt;
  }
  const std::size_t plus = rest.find("+0x");
  if (plus == rest.npos || plus == 0 || rest.find(' ') < plus) {
    return std::nullopt;
  }
  KernelFrame out{.function = base::elide(rest.substr(0, plus), kLongestSymbol), .module = {}};
  if (const auto module = between(rest, " [", "]")) {
    out.module = base::elide(*module, kLongestSymbol);
  }
  return out;
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

/// Takes the frames at `at`; nothing if there are none.
std::optional<model::Fact> take_stack(std::span<const std::string_view> lines, std::size_t& at) {
  std::vector<std::string> functions;
  std::vector<std::string> modules;
  for (; at < lines.size(); ++at) {
    auto frame = kernel_frame(lines[at]);
    if (!frame) {
      break;
    }
    if (functions.size() < kMostFramesOfKernel) {
      functions.push_back(std::move(frame->function));
      modules.push_back(std::move(frame->module));
    }
  }
  if (functions.empty()) {
    return std::nullopt;
  }
  model::Fact fact{.rank = {}, .pid = {}, .kind = "kernel-stack", .fields = {}};
  fact.fields["functions"] = std::move(functions);
  fact.fields["modules"] = std::move(modules);
  return fact;
}

}  // namespace

bool is_kernel_frame(std::string_view line) {
  return kernel_frame(line).has_value();
}

void read_kernel_stacks(std::span<const std::string_view> lines, model::JobModel& job) {
  std::vector<model::Fact> stacks;
  Whose whose;
  std::size_t named_at = 0;
  for (std::size_t at = 0; at < lines.size() && stacks.size() < kMostStacks;) {
    const Whose named = whose_path(lines[at], "/stack");
    whose = named.pid != 0 ? named : whose;
    named_at = named.pid != 0 ? at : named_at;
    const std::size_t start = at;
    auto stack = take_stack(lines, at);
    if (!stack) {
      ++at;
      continue;
    }
    if (whose.pid != 0 && start - named_at <= kHeadingAbove) {
      stack->pid = whose.pid;
      stack->fields["tid"] = std::int64_t{whose.tid};
    }
    whose = {};
    stacks.push_back(std::move(*stack));
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
