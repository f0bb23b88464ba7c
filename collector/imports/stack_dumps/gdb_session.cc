// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/gdb_session.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/gdb_frames.h"

namespace ddpdoctor::imports {
namespace {

/// Fills the thread from `Thread 0x7f26f71336c0 (LWP 18823) "python"`, `LWP 7`, `process 7` or
/// FreeBSD's `LWP 101784 of process 7`.
void read_target(std::string_view text, GdbThread& thread) {
  const std::size_t light = text.find("LWP ");
  const std::size_t start = light == text.npos ? text.find("process ") : light + 4;
  thread.name = between(text, "\"", "\"").value_or("");
  if (const std::size_t at = text.find("Thread 0x"); at != text.npos) {
    const std::string_view address = text.substr(at + 7);
    thread.pointer = hex_of(address.substr(0, address.find_first_of(" )")));
  }
  if (start < text.size()) {
    std::string_view rest = text.substr(start);
    take_prefix(rest, "process ");
    thread.tid = static_cast<pid_t>(take_number(rest, kMaxPid).value_or(0));
    const auto process = take_prefix(rest, " of process ") ? take_number(rest, kMaxPid)
                                                           : std::optional<std::int64_t>();
    if (process && *process > 0) {
      thread.process = static_cast<pid_t>(*process);
    }
  }
}

/// "135     ../sysdeps/unix/lowlevellock.S: No such file or directory.": the source line that gdb
/// shows after a frame.
bool is_source_line(std::string_view line) {
  return take_number(line, kMaxLine) && (line.starts_with('\t') || line.starts_with("  "));
}

}  // namespace

std::optional<GdbThread> gdb_heading(std::string_view line) {
  if (!take_prefix(line, "Thread ")) {
    return std::nullopt;
  }
  const auto number = take_number(line, 10'000'000);
  if (!number || !line.starts_with(" (") ||
      !(line.ends_with(')') || line.find("):") != line.npos)) {
    return std::nullopt;
  }
  GdbThread out{.number = *number, .tid = 0, .name = {}, .pointer = {}};
  read_target(line, out);
  return out;
}

std::optional<GdbThread> switched_to(std::string_view line) {
  if (!take_prefix(line, "[Switching to thread ")) {
    return std::nullopt;
  }
  const auto number = take_number(line, 10'000'000);
  GdbThread out{.number = number.value_or(0), .tid = 0, .name = {}, .pointer = {}};
  read_target(line.substr(0, line.find(")]")), out);
  return number && out.tid != 0 ? std::optional(out) : std::nullopt;
}

std::optional<GdbThread> thread_row(std::string_view line) {
  const bool selected = take_prefix(line, "*");
  line = base::trim(line);
  const auto number = take_number(line, 10'000'000);
  if (!number || !line.starts_with(' ')) {
    return std::nullopt;
  }
  line = base::trim(line);
  if (!line.starts_with("Thread 0x") && !line.starts_with("LWP ") &&
      !line.starts_with("process ")) {
    return std::nullopt;
  }
  GdbThread out{.number = *number, .tid = 0, .name = {}, .pointer = {}};
  out.selected = selected;
  read_target(line, out);
  const std::size_t quote = out.name.empty() ? line.npos : line.find('"', line.find('"') + 1);
  const std::size_t end = quote == line.npos ? line.find(')') : quote;
  out.frame = end == line.npos ? std::string_view() : base::trim(line.substr(end + 1));
  out.frame.remove_prefix(std::min(out.frame.find_first_not_of(") "), out.frame.size()));
  return out.tid == 0 ? std::nullopt : std::optional(out);
}

bool begins_thread_table(const Lines& lines) {
  const std::string_view title = base::trim(lines.peek());
  return title.starts_with("Id ") && title.find("Target Id") != title.npos &&
         thread_row(lines.peek(1)).has_value();
}

namespace {

/// "$ gdb -p 7 ./python", "sudo /usr/bin/gdb --pid=7": the command that began the session.
std::optional<pid_t> named_by_command(std::string_view line) {
  constexpr std::string_view kGdb = "gdb ";
  const std::size_t at = line.find(kGdb);
  if (at == line.npos || (at > 0 && line[at - 1] != ' ' && line[at - 1] != '/')) {
    return std::nullopt;
  }
  bool option = false;   // the number behind it is the pid
  bool program = false;  // the word before is a program: "gdb python 7"
  for (std::string_view word : base::split(line.substr(at + kGdb.size()), ' ')) {
    if (program) {
      return line.ends_with(word) ? pid_of(word) : std::nullopt;
    }
    program = !option && !word.starts_with('-') &&
              (word.find("python") != word.npos || word.find('/') != word.npos);
    option = option || take_prefix(word, "--pid=") || take_prefix(word, "-pid=");
    if (option && !word.empty()) {
      const auto number = take_number(word, kMaxPid);
      return number && *number > 0 && word.empty() ? std::optional(static_cast<pid_t>(*number))
                                                   : std::nullopt;
    }
    option = word == "-p" || word == "--pid" || word == "-pid";
  }
  return std::nullopt;
}

}  // namespace

std::optional<pid_t> process_named(std::string_view line) {
  const std::size_t at = line.rfind("process ");
  if (at == std::string_view::npos ||
      (!line.starts_with("Attaching to ") && !line.starts_with("Detaching from ") &&
       !line.starts_with("[Inferior "))) {
    return std::nullopt;
  }
  std::string_view rest = line.substr(at + 8);
  const auto number = take_number(rest, kMaxPid);
  return number && *number > 0 ? std::optional(static_cast<pid_t>(*number)) : std::nullopt;
}

std::optional<pid_t> attached_to(std::string_view line) {
  return line.starts_with("Attaching to ") ? process_named(line) : named_by_command(line);
}

std::optional<pid_t> mutex_owner(std::string_view line) {
  const auto owner =
      line.starts_with('$') ? number_behind(line, "__owner = ", kMaxPid) : std::nullopt;
  return owner && *owner > 0 ? std::optional(static_cast<pid_t>(*owner)) : std::nullopt;
}

bool is_gdb_remark(std::string_view line) {
  constexpr std::array<std::string_view, 13> kRemarks = {
      "[New LWP ", "[Thread debugging using", "[Switching to ", "Using host libthread_db",
      "Backtrace stopped", "Reading symbols", "(gdb)", "(More stack frames follow", "warning: ",
      // "Unable to locate python frame".
      "Unable to ", "Python Exception <", "Error occurred in Python", "Quit"};
  const std::string_view title = base::trim(line);
  const bool left_out = std::none_of(title.begin(), title.end(), [](unsigned char c) {
    return std::isalnum(c) != 0;  // "[...]" of who copied it
  });
  return left_out || is_gdb_pager(line) || is_source_line(line) ||
         (title.starts_with("Id ") && title.find("Target Id") != title.npos) ||
         std::any_of(kRemarks.begin(), kRemarks.end(),
                     [line](std::string_view remark) { return line.starts_with(remark); });
}

bool ends_session(std::string_view line) {
  return line == "(gdb) q" || line.starts_with("(gdb) quit") || line.starts_with("(gdb) detach") ||
         line.starts_with("(gdb) attach");
}

}  // namespace ddpdoctor::imports
