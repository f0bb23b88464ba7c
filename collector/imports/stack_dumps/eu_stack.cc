// SPDX-License-Identifier: Apache-2.0
// eu-stack -p PID: native frames only. With -s, a line below a frame names the source; with -m, the
// module follows the function.
#include <utility>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_readers.h"

namespace ddpdoctor::imports {
namespace {

/// "#3  0x00007f267bb278ec     clone3 - 1 - /usr/lib/libc.so.6".
std::optional<model::Frame> eu_stack_frame(std::string_view line) {
  line = base::trim(line);
  if (!take_prefix(line, "#") || !take_number(line, 1'000'000)) {
    return std::nullopt;
  }
  line = base::trim(line);
  model::Frame frame;
  if (const auto address = hex_of(line.substr(0, line.find(' ')))) {
    frame.address = *address;
    line =
        line.find(' ') == line.npos ? std::string_view() : base::trim(line.substr(line.find(' ')));
  }
  if (const std::size_t dash = line.rfind(" - "); dash != std::string_view::npos) {
    frame.module = base::elide(base::file_name(line.substr(dash + 3)), kLongestName);
    line = line.substr(0, dash);
  }
  if (line.ends_with(" - 1")) {  // -1: the call precedes the address by one byte
    line.remove_suffix(4);
  }
  if (frame.module.empty() && line.find("@GLIBC_") != line.npos) {  // printed without -m
    frame.module = "libc.so.6";
  }
  frame.function = native_name(line);
  return frame;
}

/// "    ../nptl/pthread_create.c:442:8" below a frame.
void read_source(std::string_view line, model::Frame& frame) {
  line = base::trim(line);
  const auto parts = base::split(line, ':');
  const auto number = parts.size() < 2 ? std::nullopt : number_of(parts[1], kMaxLine);
  if (number && frame.file.empty()) {
    frame.file = base::elide(parts[0], kLongestName);
    frame.line = static_cast<int>(*number);
  }
}

/// "TID 20163:", with a name in newer versions.
std::optional<pid_t> thread_of(std::string_view line) {
  if (!take_prefix(line, "TID ")) {
    return std::nullopt;
  }
  return pid_of(line.substr(0, line.find_first_of(": ")));
}

std::optional<pid_t> process_of(std::string_view line) {
  if (!take_prefix(line, "PID ")) {
    return std::nullopt;
  }
  const std::size_t end = line.find(' ');
  const bool fits = line.find("- process") != line.npos || line.find("- core") != line.npos;
  return fits ? pid_of(line.substr(0, end)) : std::nullopt;
}

}  // namespace

bool read_eu_stack(Lines& lines, std::vector<StackDump>& out) {
  const auto pid = process_of(lines.peek());
  if (out.size() >= kMostDumps || !pid) {
    return false;
  }
  lines.take();
  StackDump dump = new_dump();
  dump.process.pid = *pid;
  model::Thread* thread = nullptr;
  while (!lines.done()) {
    const std::string_view line = lines.peek();
    if (const auto tid = thread_of(line)) {
      thread = add_thread(dump, *tid, "");
    } else if (auto frame = thread == nullptr ? std::nullopt : eu_stack_frame(line)) {
      add_frame(*thread, std::move(*frame));
    } else if (thread != nullptr && !thread->frames.empty() && line.starts_with("    ")) {
      read_source(line, thread->frames.back());
    } else if (!line.starts_with("eu-stack:") && !base::trim(line).empty()) {
      break;
    }
    lines.take();
  }
  put_main_first(dump);
  out.push_back(std::move(dump));
  return true;
}

}  // namespace ddpdoctor::imports
