// SPDX-License-Identifier: Apache-2.0
// "INFO: task python:4223 blocked for more than 122 seconds.", below it "Call Trace:" and
// "nfs_wait_bit_killable+0x1c/0x60 [nfs]", before Linux 4.11 "[<ffffffffc0a4>] nfs_…".
#include "collector/imports/logs/hung_task.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "collector/imports/logs/fabric_text.h"
#include "collector/imports/stack_dumps/kernel_stacks.h"
#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostHungTasks = 256;
constexpr std::size_t kMostTraceLines = 60;  // of one warning
constexpr std::size_t kLongestTaskLine = 128;

struct HungTask {
  pid_t pid = 0;
  std::int64_t seconds = 0;
  std::string line;
  KernelStack stack;
};

bool is_program_of_python(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"python", "pt_", "ray::", "torchrun"};
  return base::begins_with_any(name, kNames);
}

std::optional<HungTask> hung_task(std::string_view text) {
  const auto task = between(text, "INFO: task ", " blocked for more than ");
  const std::size_t colon = task ? task->rfind(':') : text.npos;
  const auto pid = colon == text.npos ? std::nullopt : pid_of(task->substr(colon + 1));
  const auto seconds = number_behind(text, " blocked for more than ", INT32_MAX);
  if (!pid || !seconds || !is_program_of_python(task->substr(0, colon))) {
    return std::nullopt;
  }
  return HungTask{.pid = *pid,
                  .seconds = *seconds,
                  .line = base::elide(base::printable(base::trim(text)), kLongestTaskLine),
                  .stack = {}};
}

/// A frame of "Call Trace:"; those with "? " are remains on the stack.
void read_trace_line(std::string_view text, HungTask& task) {
  text = base::trim(text);
  if (take_prefix(text, "[<")) {
    const std::size_t close = std::min(text.find("] "), text.size());
    text = text.substr(std::min(close + 2, text.size()));
  }
  static_cast<void>(task.stack.take(text));
}

void add_hung_task(HungTask task, model::JobModel& job) {
  model::Fact fact = std::move(task.stack).fact(task.pid);
  fact.fields["state"] = std::string("D");
  fact.fields["blocked_seconds"] = task.seconds;
  fact.fields["text"] = std::move(task.line);
  job.facts.push_back(std::move(fact));
}

}  // namespace

void read_hung_tasks(std::string_view log, model::JobModel& job) {
  if (log.find(" blocked for more than ") == log.npos) {
    return;
  }
  HungTask current;  // pid 0: none
  std::size_t below = 0;
  std::size_t told = 0;
  const auto finish = [&] {
    if (current.pid != 0 && !current.stack.functions.empty() && told++ < kMostHungTasks) {
      add_hung_task(std::move(current), job);
    }
    current = {};
  };
  for (const std::string_view raw : base::split(log, '\n')) {
    const std::string_view line = raw.substr(0, kLongestLogLine);
    const std::string_view kernel = kernel_line(line).text;
    const std::string_view text = kernel.empty() ? line : kernel;
    auto next = hung_task(text);
    if (next || ++below > kMostTraceLines || text.find(" blocked for more than ") != text.npos) {
      finish();
    }
    if (next) {
      current = std::move(*next);
      below = 0;
    } else if (current.pid != 0) {
      read_trace_line(text, current);
    }
  }
  finish();
}

}  // namespace ddpdoctor::imports
