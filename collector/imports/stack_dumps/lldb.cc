// SPDX-License-Identifier: Apache-2.0
// lldb's `thread backtrace all` and `bt`. Threads have lldb's own numbers; on macOS and in older
// versions, also that of the system. A number is kept in the name of a thread without the latter.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_readers.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostInterjectedInLldb = 32;  // foreign lines between two threads
constexpr std::size_t kNearThread = 4;              // lines from "Process 7 stopped" to a thread

struct LldbHeading {
  std::int64_t number = 0;
  pid_t tid = 0;
  std::string_view name;
};

/// "* " marks the selected thread and frame.
std::string_view without_mark(std::string_view line) {
  line = base::trim(line);
  take_prefix(line, "* ");
  return base::trim(line);
}

/// `* thread #1, name = 'python', stop reason = signal SIGSTOP`, `thread #2: tid = 0x4a2f, …`.
std::optional<LldbHeading> lldb_heading(std::string_view line) {
  line = without_mark(line);
  const auto number = take_prefix(line, "thread #") ? take_number(line, 10'000'000) : std::nullopt;
  if (!number || !(line.empty() || line.starts_with(',') || line.starts_with(':'))) {
    return std::nullopt;
  }
  LldbHeading out{.number = *number, .tid = 0, .name = between(line, "name = '", "'").value_or("")};
  if (const std::size_t at = line.find("tid = "); at != line.npos) {
    std::string_view rest = line.substr(at + 6);
    const auto hexadecimal = hex_of(rest.substr(0, rest.find_first_of(", ")));
    const auto decimal = take_number(rest, kMaxPid);
    out.tid = hexadecimal && *hexadecimal <= std::uint64_t{kMaxPid}
                  ? static_cast<pid_t>(*hexadecimal)
                  : static_cast<pid_t>(decimal.value_or(0));
  }
  return out;
}

/// The text after "frame #3: "; nothing if the line is not a frame.
std::optional<std::string_view> frame_text(std::string_view line) {
  line = without_mark(line);
  const bool frame = take_prefix(line, "frame #") && take_number(line, 10'000'000);
  return frame && take_prefix(line, ": ") ? std::optional(line) : std::nullopt;
}

/// Removes " at ceval.c:4213:19", or " + 231", from the end.
void take_place(std::string_view& text, model::Frame& frame) {
  if (const std::size_t at = text.rfind(" at "); at != text.npos) {
    const auto parts = base::split(text.substr(at + 4), ':');
    const auto line = parts.size() < 2 ? std::nullopt : number_of(parts[1], kMaxLine);
    if (line) {
      frame.file = base::elide(parts[0], kLongestName);
      frame.line = static_cast<int>(*line);
      text = text.substr(0, at);
    }
  }
  const std::size_t plus = text.rfind(" + ");
  if (plus != text.npos && number_of(text.substr(plus + 3), INT64_MAX)) {
    text = text.substr(0, plus);
  }
}

/// "f" of "f(self=0x00007f10, n=3)": the name has types, but not values.
std::string_view without_values(std::string_view name) {
  const std::size_t equals = name.ends_with(')') ? name.find('=') : name.npos;
  const std::size_t open = name.rfind('(', equals);
  return equals == name.npos || open == name.npos || open == 0 ? name : name.substr(0, open);
}

/// "0x00007fb053c3a0e9 libnccl.so.2`commReclaim(ncclComm*) + 281".
model::Frame lldb_frame(std::string_view text) {
  model::Frame frame;
  if (const auto address = hex_of(text.substr(0, text.find(' ')))) {
    frame.address = *address;
    text = base::trim(text.substr(std::min(text.find(' '), text.size())));
  }
  if (const std::size_t tick = text.find('`'); tick != text.npos) {
    frame.module = base::elide(base::file_name(text.substr(0, tick)), kLongestName);
    text = text.substr(tick + 1);
  }
  take_place(text, frame);
  constexpr std::string_view kInlined = " [inlined] ";
  if (const std::size_t at = text.find(kInlined); at != text.npos) {
    text = text.substr(at + kInlined.size());
  }
  const bool nameless = text.starts_with("___lldb_unnamed_symbol");
  frame.function = nameless ? std::string() : native_name(without_values(text));
  return frame;
}

/// "Process 4711 stopped": lldb's line about a process after it attached.
std::optional<pid_t> stopped_process(std::string_view line) {
  if (!take_prefix(line, "Process ")) {
    return std::nullopt;
  }
  const auto pid = take_number(line, kMaxPid);
  return pid && *pid > 0 && line.starts_with(" stopped") ? std::optional(static_cast<pid_t>(*pid))
                                                         : std::nullopt;
}

/// A thread with its first frame below it.
bool begins_lldb_stack(const Lines& lines, std::size_t at = 0) {
  return lldb_heading(lines.peek(at)) && frame_text(lines.peek(at + 1));
}

/// From "Process 7 stopped" to the first thread.
bool begins_lldb_process(const Lines& lines) {
  for (std::size_t i = 1; i <= kNearThread && stopped_process(lines.peek()); ++i) {
    if (lldb_heading(lines.peek(i))) {
      return true;
    }
  }
  return false;
}

/// Another thread of the process follows the foreign line at the cursor.
bool is_interjected_in_lldb(Lines ahead) {
  for (std::size_t i = 0; i < kMostInterjectedInLldb && !ahead.done(); ++i) {
    const std::string_view line = ahead.take();
    if (lldb_heading(line)) {
      return true;
    }
    if (stopped_process(line)) {
      return false;
    }
  }
  return false;
}

/// Takes the stack below a heading. Of two stacks of one thread, the one with more frames counts:
/// lldb shows one frame where a process stops.
void read_lldb_stack(Lines& lines, model::Thread& thread) {
  std::vector<model::Frame> frames;
  while (const auto text = frame_text(lines.peek())) {
    if (frames.size() < kMostFrames) {
      frames.push_back(lldb_frame(*text));
    }
    lines.take();
  }
  if (frames.size() > thread.frames.size()) {
    thread.frames = std::move(frames);
  }
}

class LldbReading {
 public:
  explicit LldbReading(StackDump& dump) : dump_(dump) {}

  /// Takes what is at the cursor; false if it does not belong to the process.
  bool step(Lines& lines) {
    const std::string_view line = lines.peek();
    if (const auto pid = stopped_process(line)) {
      if (dump_.process.pid != 0 && dump_.process.pid != *pid) {
        return false;
      }
      dump_.process.pid = *pid;
    } else if (const auto heading = lldb_heading(line)) {
      lines.take();
      if (model::Thread* const thread = thread_of(*heading)) {
        read_lldb_stack(lines, *thread);
      }
      return true;
    } else if (!base::trim(line).empty() && !is_interjected_in_lldb(lines)) {
      return false;
    }
    lines.take();
    return true;
  }

 private:
  model::Thread* thread_of(const LldbHeading& heading) {
    const auto known = indices_.find(heading.number);
    if (known != indices_.end()) {
      return &dump_.process.threads[known->second];
    }
    const bool main = heading.number == 1;
    const pid_t tid = heading.tid == 0 && main ? dump_.process.pid : heading.tid;
    const std::string number = fmt::format("#{}", heading.number);
    const std::string name = tid != 0 || main       ? std::string(heading.name)
                             : heading.name.empty() ? number
                                                    : fmt::format("{} {}", heading.name, number);
    model::Thread* const added = add_thread(dump_, tid, name);
    indices_[heading.number] = dump_.process.threads.size() - 1;
    return added;
  }

  StackDump& dump_;
  std::map<std::int64_t, std::size_t> indices_;  // of the threads, by lldb's numbers
};

}  // namespace

bool is_lldb_backtrace(std::string_view head) {
  const std::vector<std::string_view> lines = base::split(head, '\n');
  const Lines all{std::span<const std::string_view>(lines)};
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    if (begins_lldb_stack(all, i)) {
      return true;
    }
  }
  return false;
}

bool read_lldb(Lines& lines, std::vector<StackDump>& out) {
  if (out.size() >= kMostDumps || (!begins_lldb_stack(lines) && !begins_lldb_process(lines))) {
    return false;
  }
  StackDump dump = new_dump();
  LldbReading reading(dump);
  Lines ahead = lines;
  while (!ahead.done() && reading.step(ahead)) {
  }
  const auto& threads = dump.process.threads;
  if (std::all_of(threads.begin(), threads.end(),
                  [](const model::Thread& thread) { return thread.frames.empty(); })) {
    lines = ahead;  // its lines are read only once
    return true;
  }
  lines = ahead;
  put_main_first(dump);
  out.push_back(std::move(dump));
  return true;
}

}  // namespace ddpdoctor::imports
