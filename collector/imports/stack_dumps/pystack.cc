// SPDX-License-Identifier: Apache-2.0
// pystack remote and core. Frames of a thread are outermost first, and there is no line per
// process: main threads separate them.
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/dump_locals.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/stack_readers.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kTraceback = "Traceback for thread ";
constexpr std::string_view kEmpty = "The frame stack for thread ";
constexpr std::string_view kCore = "Core file information:";
constexpr std::size_t kNearHeading = 3;       // lines from a heading to its stacks
constexpr std::size_t kMostInterjected = 32;  // foreign lines between two threads

struct PystackReading {
  StackDump dump = new_dump();
  RankClaim claim = {};
  bool has_main = false;
  bool from_core = false;
};

/// `(Python) File "train.py", line 29, in main`; `(C) File "???", line 0, in f (/usr/lib/x.so)`.
std::optional<model::Frame> pystack_frame(std::string_view line) {
  line = base::trim(line);
  if (take_prefix(line, "(Python) ")) {
    return python_frame(line);
  }
  if (line.starts_with("File \"")) {
    return python_frame(line);
  }
  if (!take_prefix(line, "(C) ") && !take_prefix(line, "(Cython) ")) {
    return std::nullopt;
  }
  auto frame = python_frame(line);
  if (!frame) {
    return std::nullopt;
  }
  frame->language = model::Language::kNative;
  std::string_view name = frame->function;
  const std::size_t open = name.rfind(" (");
  if (open != std::string_view::npos && name.ends_with(')')) {
    frame->module = base::file_name(name.substr(open + 2, name.size() - open - 3));
    name = name.substr(0, open);
  }
  frame->function = native_name(name);
  frame->file = frame->line > 0 ? frame->file : std::string();
  return frame;
}

bool ends_thread(std::string_view line) {
  return line.starts_with(kTraceback) || line.starts_with(kEmpty) || line.starts_with(kCore);
}

/// A source line below its frame, or a local below a heading.
void read_detail(std::string_view line, bool& in_locals, model::Thread& thread,
                 PystackReading& reading) {
  const std::string_view text = base::trim(line);
  if (text == "Arguments:" || text == "Locals:") {
    in_locals = true;
  } else if (in_locals) {
    take_local(thread.frames.back(), line, reading.claim);
  } else if (const model::Frame& frame = thread.frames.back();
             frame.language == model::Language::kPython && frame.line > 0 && !text.empty()) {
    const std::string_view indented = line.starts_with("        ") ? line.substr(8) : text;
    reading.dump.sources[frame.file].try_emplace(frame.line, base::elide(indented, kLongestName));
  }
}

/// Everything in a thread is indented, but a local's text may contain lines that are not. Such a
/// line ends the thread only if another thread follows soon ("=== rank 3 ===").
bool stands_outside(const Lines& lines, bool in_locals) {
  if (lines.peek().starts_with(' ')) {
    return false;
  }
  for (std::size_t ahead = 1; in_locals && ahead <= kNearHeading; ++ahead) {
    if (ends_thread(lines.peek(ahead))) {
      return true;
    }
  }
  return !in_locals;
}

void read_pystack_frames(Lines& lines, model::Thread& thread, PystackReading& reading) {
  bool in_locals = false;
  while (!lines.done() && !lines.peek().empty() && !ends_thread(lines.peek()) &&
         !stands_outside(lines, in_locals)) {
    const std::string_view line = lines.take();
    if (auto frame = pystack_frame(line)) {
      in_locals = false;
      add_frame(thread, std::move(*frame));
    } else if (!thread.frames.empty()) {
      read_detail(line, in_locals, thread, reading);
    }
  }
  std::reverse(thread.frames.begin(), thread.frames.end());
}

/// `Traceback for thread 20163 (python) [Has the GIL] (most recent call last):`.
bool begins_thread(std::string_view line, model::Thread& thread) {
  if (!take_prefix(line, kTraceback) || line.find("(most recent call last)") == line.npos) {
    return false;
  }
  thread.tid = pid_of(line.substr(0, line.find(' '))).value_or(0);
  thread.name = base::elide(between(line, "(", ")").value_or(""), kLongestName);
  const std::string_view status = between(line, "[", "]").value_or("");
  if (status.find("Has the GIL") != std::string_view::npos) {
    thread.gil = true;
  } else if (status.find("Waiting for the GIL") != std::string_view::npos) {
    thread.gil = false;
    thread.waits_on = model::WaitsOn{.kind = "gil", .target = {}, .detail = {}};
  }
  return true;
}

bool runs_python(const model::Thread& thread) {
  return std::any_of(thread.frames.begin(), thread.frames.end(), [](const model::Frame& frame) {
    return frame.language == model::Language::kPython;
  });
}

bool is_main(const model::Thread& thread) {
  const auto outermost = std::find_if(
      thread.frames.rbegin(), thread.frames.rend(),
      [](const model::Frame& frame) { return frame.language == model::Language::kPython; });
  return outermost != thread.frames.rend() && outermost->function != "_bootstrap";
}

int signal_by_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, int>, 8> kNames = {{{"SIGILL", 4},
                                                                       {"SIGABRT", 6},
                                                                       {"SIGBUS", 7},
                                                                       {"SIGFPE", 8},
                                                                       {"SIGKILL", 9},
                                                                       {"SIGSEGV", 11},
                                                                       {"SIGTERM", 15},
                                                                       {"SIGSYS", 31}}};
  const auto* const found =
      std::find_if(kNames.begin(), kNames.end(), [name](const auto& e) { return e.first == name; });
  return found == kNames.end() ? 0 : found->second;
}

/// Reads what `pystack core` writes before the stacks.
void read_core(Lines& lines, PystackReading& reading) {
  reading.from_core = true;
  while (!lines.done() && !lines.peek().starts_with(kTraceback)) {
    std::string_view line = base::trim(lines.take());
    if (const auto pid = between(line, "pid: ", " "); pid && line.starts_with("pid: ")) {
      reading.dump.process.pid = pid_of(*pid).value_or(0);
    } else if (const std::size_t at = line.find("arguments: "); at != std::string_view::npos) {
      reading.dump.process.command = words_of(line.substr(at + 11));
    } else if (const std::size_t name = line.find("receiving signal ");
               name != std::string_view::npos) {
      if (const int signal = signal_by_name(line.substr(name + 17)); signal != 0) {
        reading.dump.process.exit = model::Exit{.status = {}, .signal = signal};
      }
    }
  }
}

/// The line at the cursor is not pystack's, but the next thread belongs to the same process, whose
/// main thread has not followed yet. As a separate process it would be a rank that does not exist.
bool is_interjected(Lines ahead, const PystackReading& reading) {
  for (std::size_t i = 0; i < kMostInterjected && !ahead.done() && !reading.has_main; ++i) {
    const std::string_view line = ahead.take();
    if (line.starts_with(kTraceback) || line.starts_with(kEmpty)) {
      return i > 0;
    }
    if (rank_in_line(line) || line.starts_with(kCore)) {
      return false;
    }
  }
  return false;
}

/// Reads the thread at the cursor; false if it belongs to another process.
bool read_pystack_thread(Lines& lines, PystackReading& reading) {
  Lines ahead = lines;
  model::Thread thread;
  if (!begins_thread(ahead.take(), thread)) {
    return false;
  }
  const RankClaim claim = reading.claim;
  read_pystack_frames(ahead, thread, reading);
  if (reading.has_main && runs_python(thread)) {
    reading.claim = claim;  // the locals just read belong to the next process
    return false;
  }
  reading.has_main = reading.has_main || is_main(thread);
  if (reading.dump.process.threads.size() < kMostThreads) {
    reading.dump.process.threads.push_back(std::move(thread));
  }
  lines = ahead;
  return true;
}

void finish(PystackReading& reading, std::vector<StackDump>& out) {
  StackDump& dump = reading.dump;
  const auto main = std::find_if(dump.process.threads.begin(), dump.process.threads.end(), is_main);
  if (dump.process.pid == 0 && main != dump.process.threads.end()) {
    dump.process.pid = main->tid;
  }
  dump.process.rank = reading.claim.rank;
  put_main_first(dump);
  out.push_back(std::move(dump));
}

}  // namespace

bool read_pystack(Lines& lines, std::vector<StackDump>& out) {
  const bool core = lines.peek().starts_with(kCore);
  if (out.size() >= kMostDumps || (!core && !lines.peek().starts_with(kTraceback))) {
    return false;
  }
  PystackReading reading;
  if (core) {
    lines.take();
    read_core(lines, reading);
  }
  while (!lines.done()) {
    if (lines.peek().empty() || lines.peek().starts_with(kEmpty) ||
        is_interjected(lines, reading)) {
      lines.take();
    } else if (!read_pystack_thread(lines, reading)) {
      break;
    }
  }
  if (reading.dump.process.threads.empty()) {
    return core;
  }
  finish(reading, out);
  return true;
}

}  // namespace ddpdoctor::imports
