// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/interrupted.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/python_traceback.h"

namespace ddpdoctor::imports {
namespace {

// Lines between the tracebacks of one interrupt; more are the output of the next attempt.
constexpr std::size_t kMostBetween = 24;

/// KeyboardInterrupt is raised by Python's handler of SIGINT, SignalException by that of
/// torch.distributed.elastic.
bool says_interrupt(std::string_view exception) {
  const std::string_view name = exception.substr(0, exception.find(':'));
  return name == "KeyboardInterrupt" || name.ends_with(".SignalException");
}

/// How the line before a traceback introduces it.
enum class Introduction {
  kNone,
  kChained,  // the same thread, later
  kPartial   // without the callers, from a destructor or an exit handler
};

Introduction introduction(std::span<const std::string_view> lines, std::size_t heading) {
  constexpr std::array<std::string_view, 3> kPartial = {
      "Exception ignored ", "Error in atexit._run_exitfuncs:", "Error in sys.excepthook:"};
  std::size_t at = heading;
  while (at > 0 && base::trim(lines[at - 1]).empty()) {
    --at;
  }
  std::string_view before = at == 0 ? std::string_view() : base::trim(lines[at - 1]);
  while (take_prefix(before, "^C")) {  // a terminal shows the key
  }
  if (before.starts_with("During handling of the above exception") ||
      before.starts_with("The above exception was the direct cause")) {
    return Introduction::kChained;
  }
  const bool partial =
      std::any_of(kPartial.begin(), kPartial.end(),
                  [before](std::string_view one) { return before.starts_with(one); });
  return partial ? Introduction::kPartial : Introduction::kNone;
}

bool raises(const PythonTraceback& traceback, const model::Frame& frame) {
  const auto file = traceback.sources.find(frame.file);
  if (file == traceback.sources.end()) {
    return false;
  }
  const auto line = file->second.find(frame.line);
  return line != file->second.end() && line->second.starts_with("raise ");
}

/// A handler that raises the exception is not where the thread was.
void leave_out_handler(PythonTraceback& traceback) {
  while (!traceback.frames.empty() && raises(traceback, traceback.frames.back())) {
    traceback.frames.pop_back();
  }
}

/// asyncio raises the exception itself, after its event loop has ended.
bool shows_place(const PythonTraceback& traceback) {
  return !traceback.frames.empty() && !traceback.frames.back().file.ends_with("asyncio/runners.py");
}

}  // namespace

std::vector<StackDump> interrupted_stacks(std::span<const std::string_view> all) {
  std::vector<StackDump> out;
  Lines lines(all);
  bool read = false;     // the chain at the cursor has given its stack
  std::size_t end = 0;   // of the newest traceback that an interrupt ended
  std::size_t last = 0;  // of the newest traceback
  while (!lines.done() && out.size() < kMostDumps) {
    if (!lines.peek().ends_with(kTracebackHeading)) {
      lines.take();
      continue;
    }
    const std::size_t heading = lines.at();
    const Introduction how = introduction(all, heading);
    PythonTraceback traceback = read_python_traceback(lines);
    last = lines.at();
    read = read && how == Introduction::kChained;
    if (read || how == Introduction::kPartial || !says_interrupt(traceback.exception)) {
      continue;
    }
    if (heading - end > kMostBetween) {
      out.clear();
    }
    read = true;
    end = lines.at();
    leave_out_handler(traceback);
    if (shows_place(traceback)) {
      out.push_back(dump_of(std::move(traceback)));
      out.back().identity = fmt::format("line {}", heading);
    }
  }
  if (all.size() - last > kMostBetween) {  // the output of the next attempt
    out.clear();
  }
  std::erase_if(out, [](const StackDump& dump) {
    return role_in_dump(dump.process) == model::Role::kLauncher;
  });
  return out;
}

}  // namespace ddpdoctor::imports
