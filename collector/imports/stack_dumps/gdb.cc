// SPDX-License-Identifier: Apache-2.0
// gdb's "thread apply all bt", also for several attached processes one after the other. With
// python-gdb.py, frames contain "for file train.py, line 12, in main"; py-bt writes a traceback.
#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/stack_readers.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kEval = "_PyEval_EvalFrame";
constexpr std::string_view kPyBt = "Traceback (most recent call first):";
constexpr std::size_t kMostContinued = 16;         // continuation lines of one frame
constexpr std::size_t kMostInterjectedInGdb = 32;  // foreign lines between two threads

struct GdbHeading {
  std::int64_t number = 0;  // gdb's own number; 1 = the first thread of the process
  pid_t tid = 0;
  std::string_view name;
};

/// `Thread 2 (Thread 0x7f26f71336c0 (LWP 18823) "python"):`, `Thread 1 (LWP 7):`; the colon is
/// optional, because copies may lack it.
std::optional<GdbHeading> gdb_heading(std::string_view line) {
  if (!take_prefix(line, "Thread ")) {
    return std::nullopt;
  }
  const auto number = take_number(line, 10'000'000);
  if (!number || !line.starts_with(" (") ||
      !(line.ends_with(')') || line.find("):") != line.npos)) {
    return std::nullopt;
  }
  const std::size_t light = line.find("LWP ");
  const std::size_t start = light == line.npos ? line.find("process ") : light + 4;
  GdbHeading out{.number = *number, .tid = 0, .name = between(line, "\"", "\"").value_or("")};
  if (start != std::string_view::npos && start < line.size()) {
    std::string_view rest = line.substr(start);
    take_prefix(rest, "process ");
    out.tid = static_cast<pid_t>(take_number(rest, kMaxPid).value_or(0));
  }
  return out;
}

bool begins_frame(std::string_view line) {
  line = base::trim(line);
  return take_prefix(line, "#") && take_number(line, 10'000'000) && line.starts_with(' ');
}

/// Where the arguments of a function begin: at the parenthesis after its name, not one inside the
/// name.
std::size_t arguments_at(std::string_view text) {
  const std::size_t space = text.find(" (");
  if (space != std::string_view::npos && !text.substr(space).starts_with(" (anonymous")) {
    return space;
  }
  const std::size_t later = text.find(") (");
  return later == std::string_view::npos ? text.size() : later + 1;
}

/// " at ../csrc/x.cpp:123" and " from /usr/lib/libc.so.6" after the arguments.
void read_place(std::string_view text, model::Frame& frame) {
  if (const std::size_t at = text.rfind(") at "); at != std::string_view::npos) {
    const std::string_view place = text.substr(at + 5);
    const std::size_t colon = place.rfind(':');
    const auto number = colon == std::string_view::npos
                            ? std::nullopt
                            : number_of(place.substr(colon + 1), kMaxLine);
    frame.file = number ? base::elide(place.substr(0, colon), kLongestName) : std::string();
    frame.line = static_cast<int>(number.value_or(0));
  } else if (const std::size_t from = text.rfind(" from "); from != std::string_view::npos) {
    frame.module = base::elide(base::file_name(text.substr(from + 6)), kLongestName);
  }
}

/// "#3  0x00007f26 in c10d::Work::wait(long) () from /usr/lib/libtorch_cpu.so".
model::Frame native_frame(std::string_view line) {
  line = base::trim(line);
  take_prefix(line, "#");
  take_number(line, 10'000'000);
  line = base::trim(line);
  model::Frame frame;
  if (const auto address = hex_of(line.substr(0, line.find(' ')))) {
    frame.address = *address;
    line = base::trim(line.substr(std::min(line.find(' '), line.size())));
    take_prefix(line, "in ");
  }
  frame.function = native_name(line.substr(0, arguments_at(line)));
  read_place(line, frame);
  return frame;
}

/// "… f=Frame 0x55, for file /app/train.py, line 12, in main (rank=3) …".
std::optional<model::Frame> frame_in_arguments(std::string_view line) {
  const auto file = between(line, ", for file ", ", line ");
  const auto number = between(line, ", line ", ", in ");
  const std::size_t in = line.find(", in ", line.find(", for file "));
  const auto value = number ? number_of(*number, kMaxLine) : std::nullopt;
  if (!file || !value || in == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view name = line.substr(in + 5);
  model::Frame frame;
  frame.language = model::Language::kPython;
  frame.file = base::elide(*file, kLongestName);
  frame.line = static_cast<int>(*value);
  frame.function = base::elide(name.substr(0, name.find(" (")), kLongestName);
  return frame;
}

/// gdb does not break lines, but pagers and mailers do: a frame continues until the next one.
bool goes_on(std::string_view line) {
  const std::string_view text = base::trim(line);
  const bool place =
      line.starts_with(' ') && (text.starts_with("from /") || text.starts_with("at /"));
  return place || (line.starts_with("    ") && !begins_frame(line) && !text.starts_with("File \""));
}

/// "#7 Frame 0x7f, for file train.py, line 12, in main ()" of py-bt-full, the Python frame alone.
bool is_full_py_bt(std::string_view line) {
  line = base::trim(line);
  take_prefix(line, "#");
  take_number(line, 10'000'000);
  return base::trim(line).starts_with("Frame 0x");
}

void read_bt(Lines& lines, model::Thread& thread) {
  std::string whole(lines.take());
  while (!lines.done() && goes_on(lines.peek()) && whole.size() < kLongestName) {
    whole += ' ';
    whole += base::trim(lines.take());
  }
  auto python = frame_in_arguments(whole);
  const bool native = !python || !is_full_py_bt(whole);
  if (python) {
    add_frame(thread, std::move(*python));
  }
  if (native) {
    add_frame(thread, native_frame(whole));
  }
}

/// py-bt, most recent call first. Its frames replace the interpreter's own frames.
void read_py_bt(Lines& lines, model::Thread& thread, StackDump& dump) {
  lines.take();
  std::vector<model::Frame> python;
  while (!lines.done() && lines.peek().starts_with(' ') && python.size() < kMostFrames) {
    const std::string_view line = lines.take();
    if (auto frame = python_frame(line)) {
      // py-bt ends with the arguments: "in main (rank=3)".
      frame->function = frame->function.substr(0, frame->function.find(" ("));
      python.push_back(std::move(*frame));
    } else if (!python.empty() && line.starts_with("    ")) {
      const model::Frame& above = python.back();
      dump.sources[above.file].try_emplace(above.line, base::elide(base::trim(line), kLongestName));
    }
  }
  auto& frames = thread.frames;
  const auto interpreter = std::find_if(frames.begin(), frames.end(), [](const auto& frame) {
    return frame.function.find(kEval) != std::string::npos;
  });
  frames.erase(interpreter, frames.end());
  frames.insert(frames.end(), python.begin(), python.end());
}

/// "Attaching to process 7", "[Inferior 1 (process 7) detached]".
std::optional<pid_t> process_named(std::string_view line) {
  const std::size_t at = line.find("process ");
  const bool attaching = line.starts_with("Attaching to process ");
  if (at == std::string_view::npos || (!attaching && !line.starts_with("[Inferior "))) {
    return std::nullopt;
  }
  std::string_view rest = line.substr(at + 8);
  const auto number = take_number(rest, kMaxPid);
  return number && *number > 0 ? std::optional(static_cast<pid_t>(*number)) : std::nullopt;
}

/// "Attaching to process 7": gdb's first line about a process.
std::optional<pid_t> attached_to(std::string_view line) {
  return line.starts_with("Attaching to ") ? process_named(line) : std::nullopt;
}

/// Threads of one process are numbered down to 1, or up from 1 with -ascending.
struct Numbering {
  std::set<std::int64_t> seen;
  std::int64_t first = 0;
  std::int64_t last = 0;

  [[nodiscard]] bool begins_anew(std::int64_t number) const {
    return seen.contains(number) || (last == 1 && first > 1);
  }
  /// The next number in order: lines in between were written into the dump of this process.
  [[nodiscard]] bool goes_on_with(std::int64_t number) const {
    const bool downwards = number == last - 1;
    const bool upwards = number == last + 1 && last > first;
    return !seen.contains(number) && number > 0 && (downwards || upwards);
  }
  void take(std::int64_t number) {
    first = seen.empty() ? number : first;
    last = number;
    seen.insert(number);
  }
};

/// Messages of gdb and python-gdb.py between threads: a thread without Python has no py-bt.
bool is_remark(std::string_view line) {
  constexpr std::array<std::string_view, 12> kRemarks = {
      "[New LWP ", "[Thread debugging using", "[Switching to thread ", "Using host libthread_db",
      "Backtrace stopped", "Reading symbols", "(gdb)", "(More stack frames follow", "warning: ",
      // "Unable to locate python frame".
      "Unable to ", "Python Exception <", "Error occurred in Python"};
  return std::any_of(kRemarks.begin(), kRemarks.end(),
                     [line](std::string_view remark) { return line.starts_with(remark); });
}

model::Thread* known_thread(StackDump& dump, pid_t tid) {
  auto& threads = dump.process.threads;
  const auto known = std::find_if(threads.begin(), threads.end(),
                                  [tid](const model::Thread& one) { return one.tid == tid; });
  return tid == 0 || known == threads.end() ? nullptr : &*known;
}

model::Thread* thread_for(const GdbHeading& heading, StackDump& dump) {
  model::Thread* const known = known_thread(dump, heading.tid);
  if (known != nullptr && known->name.empty()) {
    known->name = base::elide(heading.name, kLongestName);
  }
  return known == nullptr ? add_thread(dump, heading.tid, heading.name) : known;
}

/// The line at the cursor is not gdb's, but the next thread belongs to the same process: its number
/// is the next, or it is known. As a separate process it would be a rank that does not exist.
bool is_interjected_in_gdb(Lines ahead, const Numbering& numbering, StackDump& dump) {
  for (std::size_t i = 0; i < kMostInterjectedInGdb && !ahead.done(); ++i) {
    const std::string_view line = ahead.take();
    if (const auto heading = gdb_heading(line)) {
      return numbering.goes_on_with(heading->number) || known_thread(dump, heading->tid) != nullptr;
    }
    if (process_named(line) || rank_in_line(line)) {
      return false;
    }
  }
  return false;
}

/// Reads the threads of one process at the cursor.
void read_process(Lines& lines, StackDump& dump) {
  Numbering numbering;
  model::Thread* thread = nullptr;
  while (!lines.done()) {
    const std::string_view line = lines.peek();
    if (const auto heading = gdb_heading(line)) {
      // The same numbers again are py-bt after bt, if the threads are the same.
      if (numbering.begins_anew(heading->number) && known_thread(dump, heading->tid) == nullptr) {
        return;
      }
      numbering.take(heading->number);
      thread = thread_for(*heading, dump);
      dump.process.pid = heading->number == 1 ? heading->tid : dump.process.pid;
      lines.take();
    } else if (thread != nullptr && begins_frame(line)) {
      read_bt(lines, *thread);
    } else if (thread != nullptr && line.starts_with(kPyBt)) {
      read_py_bt(lines, *thread, dump);
    } else if (attached_to(line)) {
      return;  // the next process
    } else if (const auto pid = process_named(line)) {
      dump.process.pid = dump.process.pid == 0 ? *pid : dump.process.pid;
      lines.take();
      return;
    } else if (is_remark(line) || base::trim(line).empty() ||
               is_interjected_in_gdb(lines, numbering, dump)) {
      lines.take();
    } else {
      return;
    }
  }
}

/// "#0  0x00007f26 in poll () from …", "#1  …": bt of one thread, without a heading.
bool begins_bare_bt(const Lines& lines) {
  const auto numbered = [&lines](std::size_t ahead, std::string_view number) {
    std::string_view line = base::trim(lines.peek(ahead));
    return take_prefix(line, number) && line.starts_with(' ') &&
           (line.find(" in ") != line.npos || line.find(" (") != line.npos);
  };
  std::size_t next = 1;  // a long frame continues on lines of its own
  while (next < kMostContinued && goes_on(lines.peek(next))) {
    ++next;
  }
  return numbered(0, "#0") && numbered(next, "#1");
}

/// "(gdb) py-bt" and what it prints, after the frames of the thread; false if something else
/// follows.
bool reach_py_bt(Lines& lines) {
  Lines ahead = lines;
  for (std::size_t i = 0; i < kMostInterjectedInGdb && !ahead.done(); ++i) {
    if (ahead.peek().starts_with(kPyBt)) {
      lines = ahead;
      return true;
    }
    if (!is_remark(ahead.peek()) && !base::trim(ahead.peek()).empty()) {
      return false;
    }
    ahead.take();
  }
  return false;
}

/// One thread; of an otherwise unknown process unless gdb said to which it attached.
void read_bare_bt(Lines& lines, StackDump& dump) {
  auto& threads = dump.process.threads;
  model::Thread* const thread =
      threads.empty() ? add_thread(dump, dump.process.pid, {}) : &threads.front();
  while (thread != nullptr && begins_frame(lines.peek())) {
    read_bt(lines, *thread);
  }
  if (thread != nullptr && reach_py_bt(lines)) {
    read_py_bt(lines, *thread, dump);
  }
}

/// From "Attaching to process 7" to the first frame or heading of that process: its pid, and its
/// threads, each named by "[New LWP 8]" whether its stack follows or not. The cursor stays if no
/// stack follows.
bool read_attaching(Lines& lines, StackDump& dump) {
  const auto pid = attached_to(lines.peek());
  if (!pid) {
    return false;
  }
  Lines ahead = lines;
  ahead.take();
  StackDump begun = new_dump();
  begun.process.pid = *pid;
  add_thread(begun, *pid, {});
  for (std::size_t i = 0; i < kMostThreads + kMostInterjectedInGdb && !ahead.done(); ++i) {
    if (begins_bare_bt(ahead) || gdb_heading(ahead.peek())) {
      lines = ahead;
      dump = std::move(begun);
      return true;
    }
    std::string_view line = ahead.take();
    if (attached_to(line)) {
      return false;
    }
    const auto other = take_prefix(line, "[New LWP ") ? take_number(line, kMaxPid) : std::nullopt;
    if (other && *other != *pid) {
      add_thread(begun, static_cast<pid_t>(*other), {});
    }
  }
  return false;
}

}  // namespace

bool is_bare_backtrace(std::string_view head) {
  std::vector<std::string_view> lines = base::split(head, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (base::trim(lines[i]).starts_with("#0 ") &&
        begins_bare_bt(Lines(std::span<const std::string_view>(lines).subspan(i)))) {
      return true;
    }
  }
  return false;
}

bool read_gdb(Lines& lines, std::vector<StackDump>& out) {
  if (out.size() >= kMostDumps) {
    return false;
  }
  StackDump dump = new_dump();
  read_attaching(lines, dump);
  const bool bare = begins_bare_bt(lines);
  if (!bare && !gdb_heading(lines.peek())) {
    return false;
  }
  bare ? read_bare_bt(lines, dump) : read_process(lines, dump);
  if (dump.process.threads.empty()) {
    return false;
  }
  if (dump.process.pid == 0 && !bare) {
    const auto lowest = std::min_element(
        dump.process.threads.begin(), dump.process.threads.end(),
        [](const model::Thread& a, const model::Thread& b) { return a.tid < b.tid; });
    dump.process.pid = lowest->tid;
  }
  put_main_first(dump);
  out.push_back(std::move(dump));
  return true;
}

}  // namespace ddpdoctor::imports
