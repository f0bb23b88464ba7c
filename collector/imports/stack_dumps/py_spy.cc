// SPDX-License-Identifier: Apache-2.0
// The text of py-spy dump. Frames are innermost first; file names are relative to sys.path unless
// --full-filenames was given.
#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "base/text.h"
#include "collector/imports/stack_dumps/dump_locals.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/stack_readers.h"

namespace ddpdoctor::imports {
namespace {

/// "c10d_logger.cpp:83": a file name from native debug information.
bool is_native_file(std::string_view file) {
  constexpr std::array<std::string_view, 9> kEndings = {".c",   ".cc", ".cpp", ".cxx", ".h",
                                                        ".hpp", ".cu", ".S",   ".rs"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [file](std::string_view ending) { return file.ends_with(ending); });
}

/// `Thread 20163 (active+gil): "MainThread"`; some versions omit the number.
model::Thread* begin_thread(std::string_view line, StackDump& dump) {
  if (!take_prefix(line, "Thread ")) {
    return nullptr;
  }
  const std::string_view id = line.substr(0, line.find(' '));
  const std::size_t quote = line.find(": \"");
  const bool named =
      quote != std::string_view::npos && line.ends_with('"') && quote + 3 < line.size();
  const pid_t tid = hex_of(id) ? tid_for(id) : pid_of(id).value_or(0);
  model::Thread* thread = add_thread(
      dump, tid, named ? line.substr(quote + 3, line.size() - quote - 4) : std::string_view());
  if (thread == nullptr) {
    return nullptr;
  }
  const std::string_view state = between(line, "(", ")").value_or("");
  if (state.starts_with("active")) {
    thread->state = 'R';
  } else if (state.starts_with("idle")) {
    thread->state = 'S';
  }
  if (state.find("gil") != std::string_view::npos) {
    thread->gil = true;
  }
  return thread;
}

bool is_heading(std::string_view text) {
  return text == "Arguments:" || text == "Locals:";
}

/// "Python v3.11.7 (/usr/bin/python3.11)", "Parent Process 20159: torchrun …".
bool read_about_line(std::string_view line, StackDump& dump) {
  if (take_prefix(line, "Python v")) {
    dump.process.python_version = base::elide(line.substr(0, line.find(' ')), 32);
    if (const auto exe = between(line, "(", ")")) {
      dump.process.exe = base::elide(*exe, kLongestName);
    }
    return true;
  }
  if (take_prefix(line, "Parent Process ")) {
    if (const auto pid = pid_of(line.substr(0, line.find(':')))) {
      dump.process.ppid = *pid;
    }
    return true;
  }
  return false;
}

bool begins(std::string_view line, StackDump& dump) {
  if (!take_prefix(line, "Process ")) {
    return false;
  }
  const std::size_t colon = line.find(':');
  const auto pid = pid_of(line.substr(0, colon));
  if (!pid || colon == std::string_view::npos) {
    return false;
  }
  dump.process.pid = *pid;
  dump.process.command = words_of(line.substr(colon + 1));
  return true;
}

/// Column of the first character of the text; some terminals and editors copy tabs.
std::size_t indentation_of(std::string_view line) {
  std::size_t columns = 0;
  for (const char c : line.substr(0, std::min(line.find_first_not_of(" \t"), line.size()))) {
    columns += c == '\t' ? 4 : 1;
  }
  return columns;
}

constexpr std::string_view kMainThread = "MainThread";

/// A second main thread begins the next process if the line "Process 71: …" is missing, which is
/// often not copied. The threads above the first one belong to its process.
bool begins_next_main(std::string_view line, const StackDump& dump) {
  const auto& threads = dump.process.threads;
  return is_py_spy_thread(line) && line.ends_with(": \"MainThread\"") &&
         std::any_of(threads.begin(), threads.end(),
                     [](const model::Thread& one) { return one.name == kMainThread; });
}

/// "$ py-spy dump --native --pid 71 | less": the command, if threads without "Process 71: …"
/// follow.
bool begins_by_command(Lines& lines, StackDump& dump) {
  constexpr std::size_t kMostBlank = 2;
  const std::string_view line = lines.peek();
  const std::size_t command = line.find("py-spy dump ");
  std::size_t next = 1;
  while (next <= kMostBlank && base::trim(lines.peek(next)).empty()) {
    ++next;
  }
  if (command == line.npos || !is_py_spy_thread(lines.peek(next))) {
    return false;
  }
  bool named = false;  // the word is the pid
  for (std::string_view word : base::split(line.substr(command), ' ')) {
    named = named || take_prefix(word, "--pid=");
    if (const auto pid = named ? pid_of(word) : std::nullopt; pid && *pid > 0) {
      dump.process.pid = *pid;
      break;
    }
    named = word == "-p" || word == "--pid";
  }
  if (dump.process.pid == 0) {
    return false;
  }
  dump.process.rank = rank_in_line(line);
  for (std::size_t i = 0; i < next; ++i) {
    lines.take();
  }
  return true;
}

/// "close (connector.py:658)   <- stuck here": the frame without what a person wrote behind it.
std::string_view without_remark(std::string_view line) {
  for (std::size_t open = line.find(" ("); open != line.npos; open = line.find(" (", open + 1)) {
    const std::size_t close = line.find(')', open);
    const std::string_view place =
        close == line.npos ? std::string_view() : line.substr(open + 2, close - open - 2);
    const std::size_t colon = place.rfind(':');
    if (colon != place.npos && number_of(place.substr(colon + 1), 100'000'000) &&
        line.substr(close + 1).starts_with(' ')) {
      return line.substr(0, close + 1);
    }
  }
  return line;
}

/// False if the line is not part of this dump.
bool read_line(std::string_view line, StackDump& dump, model::Thread*& thread, RankClaim& claim) {
  if (line.starts_with("Thread ")) {
    if (begins_next_main(line, dump)) {
      return false;  // the next process
    }
    thread = begin_thread(line, dump);
    return thread != nullptr;
  }
  if (thread == nullptr || indentation_of(line) < 4) {
    return line.empty() || read_about_line(line, dump);
  }
  if (is_heading(base::trim(line))) {
    return true;
  }
  if (indentation_of(line) >= 12) {
    if (!thread->frames.empty()) {
      take_local(thread->frames.back(), line, claim);
    }
    return true;
  }
  auto frame = py_spy_frame(without_remark(line));
  return !frame || add_frame(*thread, std::move(*frame));
}

/// "20163"; "0x7F26F71336C0", the thread's address, where py-spy does not know the kernel's id.
bool take_thread_id(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  if (!hex_of(word)) {
    return take_number(text, INT64_MAX).has_value();
  }
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

std::optional<model::Frame> py_spy_frame(std::string_view line) {
  line = base::trim(line);
  const std::size_t open = line.rfind(" (");
  if (open == std::string_view::npos || !line.ends_with(')')) {
    return std::nullopt;
  }
  const std::string_view place = line.substr(open + 2, line.size() - open - 3);
  const std::string_view name = line.substr(0, open);
  model::Frame frame;
  const std::size_t colon = place.rfind(':');
  const auto number = colon == std::string_view::npos
                          ? std::nullopt
                          : number_of(place.substr(colon + 1), 100'000'000);
  if (!number) {
    frame.module = base::elide(place, kLongestName);
    if (const auto address = hex_of(name)) {
      frame.address = *address;
    } else {
      frame.function = native_name(name);
    }
    return frame;
  }
  frame.file = base::elide(place.substr(0, colon), kLongestName);
  frame.line = static_cast<int>(*number);
  if (is_native_file(frame.file)) {
    frame.function = native_name(name);
  } else {
    frame.language = model::Language::kPython;
    frame.function = base::elide(name, kLongestName);
  }
  return frame;
}

bool is_py_spy_thread(std::string_view line) {
  if (!take_prefix(line, "Thread")) {
    return false;
  }
  std::string_view rest = line;
  const bool numbered = take_prefix(rest, " ") && take_thread_id(rest);
  line = numbered ? rest : line;
  const bool named = numbered || line.find("): \"") != std::string_view::npos;
  return named && (line.starts_with(" (idle") || line.starts_with(" (active"));
}

namespace {

/// Headings of main threads without a frame between them: a person wrote those processes above one
/// stack because all of them have it.
std::vector<std::string_view> take_shared_headings(Lines& lines) {
  std::vector<std::string_view> out;
  const auto is_main = [](std::string_view line) {
    return is_py_spy_thread(line) && line.ends_with(": \"MainThread\"");
  };
  while (is_main(lines.peek()) && is_main(lines.peek(1)) && lines.peek() != lines.peek(1)) {
    out.push_back(lines.take());
  }
  return out;
}

/// A process with that heading and the stack of `dump`.
StackDump with_stack_of(const StackDump& dump, std::string_view heading) {
  StackDump out = new_dump();
  if (model::Thread* thread = begin_thread(heading, out); thread != nullptr) {
    thread->frames = dump.process.threads.front().frames;
    out.process.pid = std::max(thread->tid, 0);
  }
  return out;
}

}  // namespace

bool read_py_spy(Lines& lines, std::vector<StackDump>& out) {
  StackDump dump = new_dump();
  if (out.size() >= kMostDumps) {
    return false;
  }
  std::vector<std::string_view> shared;
  if (begins(lines.peek(), dump)) {
    lines.take();
  } else if (!begins_by_command(lines, dump)) {
    if (!is_py_spy_thread(lines.peek())) {
      return false;
    }
    shared = take_shared_headings(lines);
  }
  model::Thread* thread = nullptr;
  RankClaim claim;
  while (!lines.done() && read_line(lines.peek(), dump, thread, claim)) {
    lines.take();
  }
  dump.process.rank = claim.rank ? claim.rank : dump.process.rank;
  if (dump.process.pid == 0) {
    const auto& threads = dump.process.threads;
    const auto main = std::find_if(threads.begin(), threads.end(),
                                   [](const auto& one) { return one.name == kMainThread; });
    dump.process.pid = main == threads.end() ? 0 : std::max(main->tid, 0);
  }
  put_main_first(dump);
  for (const std::string_view heading : shared) {
    if (out.size() < kMostDumps && !dump.process.threads.empty()) {
      out.push_back(with_stack_of(dump, heading));
    }
  }
  out.push_back(std::move(dump));
  return true;
}

}  // namespace ddpdoctor::imports
