// SPDX-License-Identifier: Apache-2.0
// py-spy dump --json: an array of threads; with --subprocesses, the threads of all processes in one
// array.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/documents/json_cursor.h"
#include "collector/imports/documents/json_text.h"
#include "collector/imports/stack_dumps/stack_readers.h"

namespace ddpdoctor::imports {
namespace {

std::string short_text(const Cursor& in, std::string_view key) {
  const Cursor field = in[key];
  return base::elide(field.text().value_or(""), kLongestName);
}

model::Frame read_frame(const Cursor& in) {
  model::Frame frame;
  const Cursor line = in["line"];
  const std::string module = short_text(in, "module");
  frame.function = short_text(in, "name");
  frame.line = static_cast<int>(line.whole(0, kMaxLine).value_or(0));
  if (module.empty()) {
    frame.language = model::Language::kPython;
    frame.file = short_text(in, "filename");
  } else {
    frame.module = base::file_name(module);
    frame.address = hex_of(frame.function).value_or(0);
    frame.function = frame.address != 0 ? std::string() : native_name(frame.function);
  }
  return frame;
}

void read_thread(const Cursor& in, StackDump& dump) {
  const Cursor tid = in["os_thread_id"];
  const Cursor active = in["active"];
  const Cursor gil = in["owns_gil"];
  const Cursor frames = in["frames"];
  model::Thread* thread = add_thread(dump, static_cast<pid_t>(tid.whole(0, kMaxPid).value_or(0)),
                                     short_text(in, "thread_name"));
  if (thread == nullptr) {
    return;
  }
  if (const auto runs = active.flag()) {
    thread->state = *runs ? 'R' : 'S';
  }
  if (gil.flag() == true) {
    thread->gil = true;
  }
  frames.each([thread](const Cursor& frame) { add_frame(*thread, read_frame(frame)); });
}

void read_about(const Cursor& in, StackDump& dump) {
  const Cursor parent = in["parent"];
  const Cursor pid = parent["pid"];
  dump.process.command = words_of(short_text(in, "command_line"));
  if (const auto number = pid.whole(1, kMaxPid)) {
    dump.process.ppid = static_cast<pid_t>(*number);
  }
}

/// Threads of one process may be separated in the array: they are grouped by pid.
void read_document(const Cursor& root, std::vector<StackDump>& out) {
  const std::size_t first = out.size();
  root.each([&](const Cursor& thread) {
    const Cursor number = thread["pid"];
    const auto pid = static_cast<pid_t>(number.whole(0, kMaxPid).value_or(0));
    auto known = std::find_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                              [pid](const StackDump& dump) { return dump.process.pid == pid; });
    if (known == out.end()) {
      if (out.size() >= kMostDumps) {
        return;
      }
      out.push_back(new_dump());
      known = std::prev(out.end());
      known->process.pid = pid;
    }
    const Cursor about = thread["process_info"];
    if (about.present() && known->process.command.empty()) {
      read_about(about, *known);
    }
    read_thread(thread, *known);
  });
  for (std::size_t i = first; i < out.size(); ++i) {
    put_main_first(out[i]);
  }
}

/// The end of the first document in the text: its last bracket, outside strings.
std::size_t end_of_document(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      i += c == '\\' ? 1 : 0;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if ((c == ']' || c == '}') && --depth <= 0) {
      return i + 1;
    }
  }
  return text.size();
}

}  // namespace

base::Result<std::vector<StackDump>> read_py_spy_json(std::string_view text,
                                                      const std::string& name) {
  std::vector<StackDump> out;
  Complaint complaint{.file = name, .first = {}};
  for (text = base::trim(text); text.starts_with('['); text = base::trim(text)) {
    const std::size_t end = end_of_document(text);
    const PlainDocument document = TRY(read_json(text.substr(0, end), name));
    const Cursor root(document, complaint);
    read_document(root, out);
    text.remove_prefix(end);
  }
  if (complaint.first) {
    return tl::make_unexpected(*complaint.first);
  }
  if (out.empty()) {
    return base::failure(
        fmt::format("{} is not output of py-spy dump --json: it names no thread", name));
  }
  return out;
}

}  // namespace ddpdoctor::imports
