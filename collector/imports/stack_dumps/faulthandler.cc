// SPDX-License-Identifier: Apache-2.0
// Python's faulthandler. It writes no pid: the address of the main thread identifies a process.
// Threads are written newest first, so the main thread ends a dump.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/stack_dumps/stack_readers.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kOrder = "(most recent call first):";
constexpr std::string_view kFatal = "Fatal Python error: ";

/// "Timeout (0:05:00)!" → 300.
std::optional<double> timeout_of(std::string_view line) {
  line = base::trim(line);
  if (!take_prefix(line, "Timeout (") || !line.ends_with(")!")) {
    return std::nullopt;
  }
  double seconds = 0;
  for (const std::string_view part : base::split(line.substr(0, line.size() - 2), ':')) {
    const auto number = number_of(part.substr(0, part.find('.')), 1'000'000'000);
    if (!number) {
      return std::nullopt;
    }
    seconds = seconds * 60 + static_cast<double>(*number);
  }
  return seconds;
}

/// The signal after "Fatal Python error: Segmentation fault"; 0 for Python's own fatal errors.
int signal_of(std::string_view error) {
  constexpr std::array<std::pair<std::string_view, int>, 5> kErrors = {
      {{"Segmentation fault", 11},
       {"Aborted", 6},
       {"Bus error", 7},
       {"Floating point exception", 8},
       {"Illegal instruction", 4}}};
  const auto* const found =
      std::find_if(kErrors.begin(), kErrors.end(),
                   [error](const auto& entry) { return error.starts_with(entry.first); });
  return found == kErrors.end() ? 6 : found->second;
}

struct Heading {
  std::string_view id;
  std::string_view name;
  bool current = false;  // for a fatal error: the thread in which it occurred
};

/// "Thread 0x00007f26f71336c0 [loader] (most recent call first):", "Current thread 0x…".
std::optional<Heading> thread_heading(std::string_view line) {
  line = base::trim(line);
  if (!line.ends_with(kOrder)) {
    return std::nullopt;
  }
  const bool current = take_prefix(line, "Current thread ");
  if (!current && !take_prefix(line, "Thread ")) {
    return line.starts_with("Stack ") ? std::optional(Heading{}) : std::nullopt;
  }
  const std::string_view id = line.substr(0, line.find(' '));
  return hex_of(id)
             ? std::optional(Heading{
                   .id = id, .name = between(line, "[", "]").value_or(""), .current = current})
             : std::nullopt;
}

bool is_known(const StackDump& dump, pid_t tid) {
  return std::any_of(dump.process.threads.begin(), dump.process.threads.end(),
                     [tid](const model::Thread& thread) { return thread.tid == tid; });
}

void read_frames(Lines& lines, model::Thread& thread) {
  // A web page or a log viewer may have removed the indentation.
  while (!lines.done() && (lines.peek().starts_with("  ") || faulthandler_frame(lines.peek()))) {
    if (auto frame = python_frame(lines.peek())) {
      add_frame(thread, std::move(*frame));
    }
    lines.take();  // "  ...", "  <no Python frame>", "  Garbage-collecting" say nothing here
  }
}

/// The main thread, which is the last one; with `python -m`, runpy is its outermost frame.
bool ends_dump(const model::Thread& thread) {
  return !thread.frames.empty() && (thread.frames.back().function == "<module>" ||
                                    thread.frames.back().function == "_run_module_as_main");
}

/// Reads threads up to the main one, or up to the first that occurred before.
void read_threads(Lines& lines, StackDump& dump) {
  while (!lines.done()) {
    if (base::trim(lines.peek()).empty()) {
      lines.take();
      continue;
    }
    const auto heading = thread_heading(lines.peek());
    const pid_t tid = heading ? tid_for(heading->id) : 0;
    if (!heading || is_known(dump, tid)) {
      return;
    }
    lines.take();
    model::Thread* thread =
        add_thread(dump, tid, heading->name.empty() ? heading->id : heading->name);
    if (thread == nullptr) {
      return;
    }
    read_frames(lines, *thread);
    // It died in this thread.
    thread->state = heading->current && dump.process.exit ? 'X' : thread->state;
    if (ends_dump(*thread)) {
      return;
    }
  }
}

/// The frames below "Timeout (0:05:00)!" without a heading.
void read_unnamed_thread(Lines& lines, StackDump& dump) {
  dump.identity = fmt::format("line {}", lines.at());
  dump.one_of_many = true;
  if (model::Thread* thread = add_thread(dump, 0, {})) {
    read_frames(lines, *thread);
    thread->state = dump.process.exit ? 'X' : thread->state;
  }
}

}  // namespace

bool read_faulthandler(Lines& lines, std::vector<StackDump>& out) {
  StackDump dump = new_dump();
  Lines ahead = lines;
  std::string_view first = ahead.peek();
  dump.after = timeout_of(first);
  const bool fatal = take_prefix(first, kFatal);
  if (fatal) {
    dump.process.exit = model::Exit{.status = {}, .signal = signal_of(first)};
  }
  if (dump.after || fatal) {
    ahead.take();
    // "Python runtime state: initialized" precedes the stacks of a fatal error.
    for (int i = 0; i < 4 && !ahead.done() && !thread_heading(ahead.peek()) &&
                    !faulthandler_frame(ahead.peek());
         ++i) {
      ahead.take();
    }
    if (out.size() < kMostDumps && faulthandler_frame(ahead.peek())) {
      read_unnamed_thread(ahead, dump);
      lines = ahead;
      out.push_back(std::move(dump));
      return true;
    }
  }
  if (out.size() >= kMostDumps || !thread_heading(ahead.peek())) {
    return false;
  }
  read_threads(ahead, dump);
  if (dump.process.threads.empty()) {
    return false;
  }
  lines = ahead;
  auto& threads = dump.process.threads;
  const bool whole =
      threads.size() > 1 && !threads.back().frames.empty() && threads.front().frames.empty();
  if (whole) {  // the main thread is the last one, and at exit it has no <module>
    std::rotate(threads.begin(), std::prev(threads.end()), threads.end());
  }
  put_main_first(dump);
  dump.identity = fmt::format("{}", dump.process.threads.front().tid);
  out.push_back(std::move(dump));
  return true;
}

}  // namespace ddpdoctor::imports
