// SPDX-License-Identifier: Apache-2.0
// gdb's "thread apply all bt", also for several attached processes one after the other, and
// sessions typed by hand. With python-gdb.py, frames contain "for file train.py, line 12, in main";
// py-bt writes a traceback.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/gdb_frames.h"
#include "collector/imports/stack_dumps/gdb_session.h"
#include "collector/imports/stack_dumps/stack_readers.h"
#include "collector/model/native_code.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostInterjectedInGdb = 32;  // foreign lines between two threads

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

model::Thread* known_thread(StackDump& dump, pid_t tid) {
  auto& threads = dump.process.threads;
  const auto known = std::find_if(threads.begin(), threads.end(),
                                  [tid](const model::Thread& one) { return one.tid == tid; });
  return tid == 0 || known == threads.end() ? nullptr : &*known;
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

/// A line of gdb after which the stacks of a process follow.
bool begins_process(const Lines& lines) {
  return begins_bare_bt(lines) || begins_cut_bt(lines) || lines.peek().starts_with(kPyBt) ||
         is_old_py_bt(lines.peek()) || begins_full_py_bt(lines) || gdb_heading(lines.peek()) ||
         switched_to(lines.peek()) || begins_thread_table(lines);
}

/// Reads the threads of one process at the cursor.
class Session {
 public:
  explicit Session(StackDump& dump) : dump_(dump) {}

  void read(Lines& lines) {
    while (!lines.done() && step(lines)) {
    }
  }

  /// The table shows where a thread with Python frames alone sleeps, and that a thread without any
  /// frames does.
  void add_waits() {
    for (model::Thread& thread : dump_.process.threads) {
      const auto row = waits_.find(thread.tid);
      model::Frame frame = row == waits_.end() ? model::Frame() : native_frame(row->second);
      const bool sleeps = !frame.function.empty() && model::surrounds_wait(frame.function);
      if (sleeps && !thread.frames.empty() && thread.frames.size() < kMostFrames &&
          (thread.frames.front().language == model::Language::kPython ||
           model::is_call_of_buffered_file(thread.frames.front().function))) {
        thread.frames.insert(thread.frames.begin(), std::move(frame));
      } else if (thread.frames.empty() && model::sleeps_in_libc(frame)) {
        thread.state = 'S';
      }
    }
  }

  /// The first thread, where its id is not the pid.
  [[nodiscard]] std::optional<pid_t> main() const {
    return main_;
  }

  /// A table of threads, or `thread apply all`: others would be shown.
  [[nodiscard]] bool lists_threads() const {
    return listed_;
  }

 private:
  /// Takes what is at the cursor; false if it does not belong to the process.
  bool step(Lines& lines) {
    const std::string_view line = lines.peek();
    listed_ = listed_ || gdb_heading(line) || thread_row(line);
    if (const auto heading = gdb_heading(line)) {
      return take_heading(lines, *heading);
    }
    if (begins_gdb_frame(line)) {
      return take_stack(lines);
    }
    if (line.starts_with(kPyBt)) {
      if (current() == nullptr && dump_.process.threads.empty()) {
        add_thread(dump_, dump_.process.pid, {});
      }
      if (current() == nullptr) {
        return false;
      }
      read_py_bt(lines, *current(), dump_);
      return true;
    }
    if (const auto thread = switched_to(line)) {
      select(*thread);
    } else if (const auto row = thread_row(line)) {
      name_bare_stack(*row);
      add(*row);
    } else if (attached_to(line)) {
      return false;  // the next process
    } else if (const auto pid = process_named(line)) {
      dump_.process.pid = dump_.process.pid == 0 ? *pid : dump_.process.pid;
      lines.take();
      return false;
    } else if (const auto owner = mutex_owner(line)) {
      take_owner(*owner);
    } else if (in_row_ && line.starts_with("    ")) {
      lines.take();  // a long row of the table continues
      return true;
    } else if (!is_gdb_remark(line) && !base::trim(line).empty() && !answers_ &&
               !is_interjected_in_gdb(lines, numbering_, dump_)) {
      return false;
    }
    in_row_ = thread_row(line).has_value();
    take_line(lines.take());
    return !ends_session(line);
  }

  /// What follows a command is its answer, up to a blank line.
  void take_line(std::string_view line) {
    const bool prompt = line.starts_with("(gdb)");
    asked_ = prompt ? line : asked_;
    answers_ = prompt || (answers_ && !base::trim(line).empty());
  }

  bool take_heading(Lines& lines, const GdbThread& heading) {
    // The same numbers again are py-bt after bt, if the threads are the same.
    const bool known = known_thread(dump_, heading.tid) != nullptr;
    const bool bare = read_ && numbering_.seen.empty() && asked_.empty();
    if (!known && (bare || numbering_.begins_anew(heading.number))) {
      return false;
    }
    numbering_.take(heading.number);
    select(heading);
    dump_.process.pid = heading.number == 1 ? heading.process.value_or(heading.tid)
                                            : heading.process.value_or(dump_.process.pid);
    lines.take();
    return true;
  }

  bool take_stack(Lines& lines) {
    answers_ = false;
    if (read_ && begins_bare_bt(lines) && numbering_.seen.empty() && asked_.empty()) {
      return false;  // another bt without a heading is of another process, or of another moment
    }
    if (current() == nullptr && dump_.process.threads.empty()) {
      add_thread(dump_, dump_.process.pid, {});
    }
    if (current() == nullptr) {
      return false;
    }
    read_ = read_ || begins_bare_bt(lines);
    auto mutex = read_gdb_bt(lines, *current(), dump_);
    mutexes_[current_] = mutex ? std::move(*mutex) : mutexes_[current_];
    return true;
  }

  void add(const GdbThread& thread) {
    model::Thread* known = known_thread(dump_, thread.tid);
    if (known == nullptr) {
      known = add_thread(dump_, thread.tid, thread.name);
    } else if (known->name.empty()) {
      known->name = base::elide(thread.name, kLongestName);
    }
    const bool first = thread.number == 1 || thread.tid == dump_.process.pid;
    waits_.try_emplace(thread.tid, thread.frame);
    dump_.main_pointer = first && thread.pointer ? thread.pointer : dump_.main_pointer;
    if (thread.number == 1 && dump_.process.pid == 0) {
      dump_.process.pid = thread.process.value_or(thread.tid);
    }
    main_ = first && thread.process ? thread.tid : main_;
  }

  /// A table below a stack without a heading: it was the stack of the selected thread.
  void name_bare_stack(const GdbThread& row) {
    auto& threads = dump_.process.threads;
    if (row.selected && read_ && !threads.empty() && threads.front().tid == 0) {
      threads.front().tid = row.tid;
    }
  }

  void select(const GdbThread& thread) {
    if (known_thread(dump_, thread.tid) == nullptr && !dump_.process.threads.empty() &&
        dump_.process.threads.front().tid == 0) {
      dump_.process.threads.front().tid = thread.tid;  // the stack after a table of threads
    }
    add(thread);
    const auto& threads = dump_.process.threads;
    current_ = static_cast<std::size_t>(
        std::find_if(threads.begin(), threads.end(),
                     [&thread](const model::Thread& one) { return one.tid == thread.tid; }) -
        threads.begin());
    read_ = false;
  }

  void take_owner(pid_t owner) {
    const auto named = std::find_if(mutexes_.begin(), mutexes_.end(), [this](const auto& one) {
      return !one.second.empty() && asked_.find(one.second) != asked_.npos;
    });
    const std::size_t at = named == mutexes_.end() ? current_ : named->first;
    const bool other = named == mutexes_.end() && asked_.find("0x") != asked_.npos;
    const auto mutex = mutexes_.find(at);
    // "p *(pthread_mutex_t *) $r8": a register of a frame of the mutex.
    const bool of_frame = asked_.find("mutex_t") != asked_.npos && waits_for_a_mutex(at);
    if (mutex != mutexes_.end() && (!mutex->second.empty() || of_frame) && !other &&
        at < dump_.process.threads.size()) {
      dump_.process.threads[at].waits_on = model::WaitsOn{
          .kind = "mutex", .target = fmt::format("thread:{}", owner), .detail = mutex->second};
    }
  }

  [[nodiscard]] bool waits_for_a_mutex(std::size_t at) const {
    const auto& threads = dump_.process.threads;
    return at < threads.size() && !threads[at].frames.empty() &&
           model::takes_mutex(threads[at].frames.front().function);
  }

  model::Thread* current() {
    auto& threads = dump_.process.threads;
    return current_ < threads.size() ? &threads[current_] : nullptr;
  }

  StackDump& dump_;
  Numbering numbering_;
  std::size_t current_ = 0;                     // of the threads of the process
  bool read_ = false;                           // the current thread's stack, without a heading
  std::map<std::size_t, std::string> mutexes_;  // that a thread waits for, by its index
  std::map<pid_t, std::string_view> waits_;     // innermost frame of a row of a table, by tid
  std::string_view asked_;                      // the last command typed
  std::optional<pid_t> main_;
  bool listed_ = false;
  bool in_row_ = false;   // of a table of threads
  bool answers_ = false;  // the line at the cursor may be its answer
};

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
  begun.one_of_many = true;
  add_thread(begun, *pid, {});
  for (std::size_t i = 0; i < kMostThreads + kMostInterjectedInGdb && !ahead.done(); ++i) {
    if (begins_process(ahead)) {
      const auto first =
          begins_thread_table(ahead) ? thread_row(ahead.peek(1)) : gdb_heading(ahead.peek());
      if (first && first->process) {
        begun.process.threads.erase(begun.process.threads.begin());  // no thread has the pid
      }
      lines = ahead;
      dump = std::move(begun);
      return true;
    }
    std::string_view line = ahead.take();
    if (attached_to(line)) {
      return false;
    }
    begun.one_of_many = begun.one_of_many && !line.starts_with("[Thread debugging using");
    const auto other = take_prefix(line, "[New LWP ") ? take_number(line, kMaxPid) : std::nullopt;
    if (other && *other != *pid) {
      add_thread(begun, static_cast<pid_t>(*other), {});
    }
  }
  return false;
}

/// The only thread of a process does not wait for the GIL, because no other thread can hold it.
/// py-bt of Python 2 and of early 3 prints "Waiting for the GIL" for any wait with a timeout: if
/// only one thread is known and it is in a lock of Python, it waits for that lock, unless a frame
/// shows that it takes the GIL.
void forget_gil_of_one(model::Process& process, bool all_known) {
  model::Thread* only = process.threads.size() == 1 ? process.threads.data() : nullptr;
  const bool told = only != nullptr && only->waits_on && only->waits_on->kind == "gil";
  const model::Frame* python = told ? model::innermost_python(*only) : nullptr;
  if (python != nullptr &&
      ((all_known && only->tid == process.pid) || python->file.ends_with("/threading.py")) &&
      std::none_of(only->frames.begin(), only->frames.end(),
                   [](const auto& frame) { return model::takes_gil(frame.function); })) {
    only->waits_on.reset();
  }
}

}  // namespace

bool is_bare_backtrace(std::string_view head) {
  std::vector<std::string_view> lines = base::split(head, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Lines rest(std::span<const std::string_view>(lines).subspan(i));
    if (base::trim(lines[i]).starts_with('#') &&
        (begins_bare_bt(rest) || begins_cut_bt(rest) || is_old_py_bt(lines[i]) ||
         begins_full_py_bt(rest))) {
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
  // An unabridged start names each other thread: "[New LWP 8]".
  const bool attached_whole = read_attaching(lines, dump) && !dump.one_of_many;
  const bool bare = begins_bare_bt(lines) || begins_cut_bt(lines);
  if (!begins_process(lines)) {
    return false;
  }
  Session session(dump);
  session.read(lines);
  session.add_waits();
  if (!shows_frames(dump.process) && !dump.main_pointer) {
    return true;  // its lines are read only once
  }
  dump.one_of_many = !attached_whole && !session.lists_threads();
  forget_gil_of_one(dump.process, !dump.one_of_many);
  if (dump.process.pid == 0 && !bare) {
    const auto lowest = std::min_element(
        dump.process.threads.begin(), dump.process.threads.end(),
        [](const model::Thread& a, const model::Thread& b) { return a.tid < b.tid; });
    dump.process.pid = lowest->tid;
  }
  put_main_first(dump);
  if (session.main()) {
    std::stable_partition(
        dump.process.threads.begin(), dump.process.threads.end(),
        [&session](const model::Thread& one) { return one.tid == *session.main(); });
  }
  out.push_back(std::move(dump));
  return true;
}

}  // namespace ddpdoctor::imports
