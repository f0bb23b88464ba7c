// SPDX-License-Identifier: Apache-2.0
// Stacks that a program prints of its own threads: traceback.print_stack() and format_stack() of
// sys._current_frames(), in a signal handler or injected by pystack-debugger. The frames have one
// form; the line above each stack is the program's own, and names a thread. Frames are outermost
// first, as in a traceback, but no exception follows.
#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/lower.h"
#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/stack_readers.h"

namespace ddpdoctor::imports {
namespace {

using std::string_view;

constexpr std::size_t kMostHeadings = 4;  // lines between two stacks, rules and blanks included
constexpr std::size_t kLongestThreadTitle = 160;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// "-----", "=====", a blank line.
bool is_rule(string_view line) {
  return line.find_first_not_of("-=*#_ \t") == string_view::npos;
}

bool has_word(string_view line, string_view lower) {
  const auto found = std::search(
      line.begin(), line.end(), lower.begin(), lower.end(),
      [](unsigned char a, unsigned char b) { return std::tolower(a) == static_cast<int>(b); });
  return found != line.end();
}

/// `File "a.py", line 3, in f`, also `File: "a.py", …`; the tools' own forms begin otherwise.
std::optional<model::Frame> printed_frame(string_view line) {
  line = base::trim(line);
  if (line.find("\", line ") == string_view::npos || line.find(", in ") == string_view::npos) {
    return std::nullopt;
  }
  constexpr string_view kColon = "File: \"";
  return line.starts_with(kColon)
             ? python_frame(fmt::format("File \"{}", line.substr(kColon.size())))
             : python_frame(line);
}

/// A statement of the program, such as `thread.join()`, which stands above a frame in a traceback.
bool is_code(string_view line) {
  if (line.starts_with('<')) {  // "<Thread(loader, started daemon 1403)>"
    return false;
  }
  for (std::size_t at = line.find('('); at != string_view::npos; at = line.find('(', at + 1)) {
    const bool call = at > 0 && std::isalnum(static_cast<unsigned char>(line[at - 1])) != 0;
    if (call && (at + 1 == line.size() || !is_digit(line[at + 1]))) {
      return true;
    }
  }
  return line.find(" = ") != string_view::npos || line.find("self.") != string_view::npos;
}

/// "# Thread: loader(1403)", "-- Stack for thread 1403 ---", "Dumping Threads....".
bool names_thread(string_view line) {
  const string_view text = base::trim(line);
  return text.size() <= kLongestThreadTitle && !line.starts_with(' ') && has_word(text, "thread") &&
         !text.starts_with("Exception in ") && text.find("Traceback") == string_view::npos &&
         text.find(", in ") == string_view::npos && !is_code(text);
}

/// The lines of the program between the cursor and the next stack; nothing if no stack is near, or
/// it belongs to an exception or, after the first stack, to another rank.
std::optional<std::size_t> lines_to_stack(const Lines& lines, bool first) {
  for (std::size_t ahead = 0; ahead <= kMostHeadings; ++ahead) {
    const string_view line = lines.peek(ahead);
    if (printed_frame(line)) {
      return ahead;
    }
    if (line.find("Traceback") != string_view::npos ||
        line.starts_with("Stack (most recent call last)") ||
        (!first && !names_thread(line) && rank_in_line(line))) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// "ValueError: bad": what follows a traceback whose heading is missing.
bool is_exception(string_view line) {
  const string_view name = line.substr(0, line.find_first_of(": "));
  return name.ends_with("Error") || name.ends_with("Exception") || name == "KeyboardInterrupt" ||
         name == "SystemExit" || name.ends_with("Warning");
}

/// The function that prints the stacks is part of the stack of its own thread.
bool prints_stacks(string_view source) {
  constexpr std::array<string_view, 5> kCalls = {"print_stack(", "format_stack(", "extract_stack(",
                                                 "_current_frames(", "dump_traceback("};
  return base::contains_any(source, kCalls);
}

std::size_t printed_margin(string_view line) {
  return std::min(line.find_first_not_of(" \t"), line.size());
}

/// The frames at the cursor, with the source line below each. False if they are a traceback.
bool read_printed_frames(Lines& lines, model::Thread& thread, StackDump& dump) {
  std::string source;
  while (auto frame = printed_frame(lines.peek())) {
    const std::size_t margin = printed_margin(lines.take());
    source.clear();
    for (bool first = true; !lines.peek().empty() && !printed_frame(lines.peek()) &&
                            printed_margin(lines.peek()) > margin;
         first = false) {
      const string_view text = base::trim(lines.take());
      if (first) {
        source = base::elide(text, kLongestName);
        dump.sources[frame->file].try_emplace(frame->line, source);
      }
    }
    add_frame(thread, std::move(*frame));
  }
  if (is_exception(lines.peek())) {
    return false;
  }
  if (thread.frames.size() > 1 && prints_stacks(source)) {
    thread.frames.pop_back();
  }
  std::reverse(thread.frames.begin(), thread.frames.end());
  return true;
}

/// The number of a thread in its heading: threading.get_ident() or, on some systems,
/// get_native_id().
std::string ident_in(string_view heading) {
  std::string best;
  std::string digits;
  for (const char c : heading) {
    digits = is_digit(c) ? digits + c : std::string();
    best = digits.size() > best.size() ? digits : best;
  }
  return best.size() > 2 ? best : std::string();
}

/// 4711 of "ProcessID=4711, ThreadID=1403", "process 4711 thread 1403", "pid: 4711"; 0 if there is
/// none.
pid_t pid_in_heading(string_view heading) {
  const std::string low = base::lower(heading);
  for (const string_view word : {"process", "pid"}) {
    const std::size_t at = low.find(word);
    std::size_t begin = at == low.npos ? low.npos : at + word.size();
    begin = begin != low.npos && low.compare(begin, 2, "id") == 0 ? begin + 2 : begin;
    begin = low.find_first_not_of(" =:#(", begin);
    const std::size_t end = std::min(low.find_first_not_of("0123456789", begin), low.size());
    const auto number = begin < end
                            ? number_of(string_view(low).substr(begin, end - begin), kMaxPid)
                            : std::nullopt;
    if (number) {
      return static_cast<pid_t>(*number);
    }
  }
  return 0;
}

/// "loader" of "# Thread: loader(1403)"; empty if the heading has only the number.
std::string name_in(string_view heading) {
  constexpr std::array<string_view, 12> kWords = {"thread",  "threadid", "stack", "stacks",
                                                  "for",     "of",       "id",    "trace",
                                                  "dumping", "threads",  "main",  "name"};
  std::string word;
  std::string found;
  const auto end_word = [&] {
    const std::string low = base::lower(word);
    const bool common = std::find(kWords.begin(), kWords.end(), low) != kWords.end();
    const bool number = low.find_first_not_of("0123456789abcdefx") == std::string::npos;
    if (found.empty() && !word.empty() && !common && !number) {
      found = word;
    }
    word.clear();
  };
  for (const char c : heading) {
    const bool part = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    if (part && !(word.empty() && c == '-')) {
      word += c;
    } else {
      end_word();
    }
  }
  end_word();
  return found;
}

bool is_of_main(const model::Thread& thread) {
  return !thread.frames.empty() && (thread.frames.back().function == "<module>" ||
                                    thread.frames.back().function == "_run_module_as_main");
}

/// A heading names a thread, or a stack begins where threading starts one. "starting 4 threads"
/// above the frames of a warning does not.
bool shows_thread(const model::Thread& thread, string_view ident) {
  return !ident.empty() || thread.name == "MainThread" || thread.name.starts_with("Thread-") ||
         (!thread.frames.empty() && thread.frames.back().function == "_bootstrap");
}

struct PrintedThread {
  model::Thread thread;
  std::string ident;
  pid_t pid = 0;  // of its process, if the heading has it
};

/// The same thread again, with its outermost calls alone: the copy ends in the middle of a stack.
bool is_cut_copy(const PrintedThread& one, const PrintedThread& whole) {
  const auto& part = one.thread.frames;
  const auto& all = whole.thread.frames;
  return !one.ident.empty() && one.ident == whole.ident && part.size() < all.size() &&
         std::equal(part.rbegin(), part.rend(), all.rbegin(),
                    [](const model::Frame& a, const model::Frame& b) {
                      return a.file == b.file && a.line == b.line && a.function == b.function;
                    });
}

/// A process ends where a second main thread, a thread seen before, or a different pid begins.
void add_processes(std::vector<PrintedThread> threads, StackDump whole,
                   std::vector<StackDump>& out) {
  const bool main_first = !threads.empty() && is_of_main(threads.front().thread);
  const auto mains = std::count_if(threads.begin(), threads.end(),
                                   [](const PrintedThread& one) { return is_of_main(one.thread); });
  std::vector<PrintedThread> now;
  const auto finish = [&] {
    if (now.empty()) {
      return;
    }
    StackDump dump = new_dump();
    dump.sources = whole.sources;
    dump.process.pid = now.front().pid;
    for (PrintedThread& one : now) {
      if (is_of_main(one.thread)) {
        dump.identity = one.ident;
      }
      one.thread.tid = static_cast<pid_t>(-1 - static_cast<int>(dump.process.threads.size()));
      dump.process.threads.push_back(std::move(one.thread));
    }
    put_main_first(dump);
    now.clear();
    if (out.size() < kMostDumps) {
      out.push_back(std::move(dump));
    }
  };
  for (PrintedThread& one : threads) {
    const bool seen = !one.ident.empty() &&
                      std::any_of(now.begin(), now.end(), [&one](const PrintedThread& other) {
                        return other.ident == one.ident;
                      });
    const bool elsewhere = !now.empty() && now.front().pid != one.pid;
    const bool main = is_of_main(one.thread);
    const bool has_main = std::any_of(now.begin(), now.end(), [](const PrintedThread& other) {
      return is_of_main(other.thread);
    });
    if (seen || elsewhere || (has_main && mains > 1 && (main || !main_first))) {
      finish();
    }
    now.push_back(std::move(one));
  }
  finish();
}

}  // namespace

bool is_printed_heading(string_view line) {
  return names_thread(line);
}

bool read_printed_stacks(Lines& lines, std::vector<StackDump>& out) {
  if (out.size() >= kMostDumps || !names_thread(lines.peek())) {
    return false;
  }
  Lines ahead = lines;
  StackDump whole = new_dump();
  std::vector<PrintedThread> threads;
  Lines last = lines;
  bool known = false;
  while (const auto between_stacks = lines_to_stack(ahead, threads.empty())) {
    std::string heading;
    for (std::size_t i = 0; i < *between_stacks; ++i) {
      const string_view line = ahead.take();
      heading = is_rule(line) ? heading : std::string(line);
    }
    PrintedThread one;
    one.pid = pid_in_heading(heading);
    one.ident = ident_in(heading);
    one.thread.name = base::elide(name_in(heading), kLongestName);
    if (!read_printed_frames(ahead, one.thread, whole)) {
      lines = ahead;  // no tool reads these frames again
      return false;
    }
    known = known || shows_thread(one.thread, one.ident);
    threads.push_back(std::move(one));
    last = ahead;
    if (threads.size() >= kMostThreads) {
      break;  // the rest is read by the next call
    }
  }
  if (threads.empty() || !known) {
    lines = last;
    return false;
  }
  lines = last;
  if (threads.size() > 1 && is_cut_copy(threads.back(), threads[threads.size() - 2])) {
    threads.pop_back();
  }
  add_processes(std::move(threads), std::move(whole), out);
  return true;
}

}  // namespace ddpdoctor::imports
