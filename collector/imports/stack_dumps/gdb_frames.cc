// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/gdb_frames.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/model/native_code.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kEval = "_PyEval_EvalFrame";

/// The number of "#3  …"; nothing if the line is not a frame.
std::optional<std::int64_t> frame_number(std::string_view line) {
  line = base::trim(line);
  const auto number = take_prefix(line, "#") ? take_number(line, 10'000'000) : std::nullopt;
  return line.starts_with(' ') ? number : std::nullopt;
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

/// The number of "rank=0" or "rank=rank@entry=0"; gdb writes the latter if the value may be old.
std::optional<std::int64_t> argument(std::string_view arguments, std::string_view name) {
  for (std::size_t at = arguments.find(name); at != arguments.npos;
       at = arguments.find(name, at + 1)) {
    std::string_view rest = arguments.substr(at + name.size());
    const bool whole = at > 0 && (arguments[at - 1] == '(' || arguments[at - 1] == ' ');
    if (whole && take_prefix(rest, "=")) {
      if (const std::size_t entry = rest.find("@entry="); entry == name.size()) {
        rest.remove_prefix(entry + 7);
      }
      return take_number(rest, kMaxRank);
    }
  }
  return std::nullopt;
}

/// "ncclCommInitRank (newcomm=0x52, nranks=2, commId=..., myrank=0)", "bootstrapInit (id=0x7f,
/// rank=rank@entry=0, nranks=nranks@entry=2, …)": the rank in the communicator. In other functions
/// of NCCL and of MPI, "rank" may be a peer.
void read_nccl_rank(std::string_view arguments, model::Frame& frame) {
  const bool bootstrap = frame.function.starts_with("bootstrapInit");
  if (!bootstrap && !frame.function.starts_with("ncclCommInitRank")) {
    return;
  }
  const auto rank = argument(arguments, bootstrap ? "rank" : "myrank");
  const auto size = argument(arguments, "nranks");
  if (rank && size && *rank < *size) {
    frame.locals.emplace_back(kNcclRank, std::to_string(*rank));
    frame.locals.emplace_back(kNcclSize, std::to_string(*size));
  }
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

/// "#4 file '/usr/lib64/python2.6/threading.py', in 'wait'" of py-bt for Python 2.6.
std::optional<model::Frame> frame_of_old_py_bt(std::string_view line) {
  const auto file = between(line, "file '", "', in '");
  const auto function = between(line, "', in '", "'");
  if (!is_old_py_bt(line) || !file || !function) {
    return std::nullopt;
  }
  model::Frame frame;
  frame.language = model::Language::kPython;
  frame.file = base::elide(*file, kLongestName);
  frame.function = base::elide(*function, kLongestName);
  return frame;
}

/// The Python frames replace the interpreter's own.
void put_python_in(std::vector<model::Frame>& frames, const std::vector<model::Frame>& python) {
  if (python.empty()) {
    return;
  }
  const auto interpreter = std::find_if(frames.begin(), frames.end(), [](const auto& frame) {
    return frame.function.find(kEval) != std::string::npos;
  });
  frames.erase(interpreter, frames.end());
  frames.insert(frames.end(), python.begin(), python.end());
}

bool is_python(const model::Frame& frame) {
  return frame.language == model::Language::kPython;
}

/// "0x55e0" of "pthread_mutex_lock (mutex=0x55e0)" and "__lll_lock_wait (futex=futex@entry=0x55e0,
/// private=0)".
std::optional<std::string> mutex_in(std::string_view line) {
  if (line.find("lll_lock_wait") == line.npos && line.find("mutex_lock") == line.npos) {
    return std::nullopt;
  }
  for (const std::string_view name : {"mutex=", "futex@entry=", "futex="}) {
    const std::size_t at = line.find(name);
    const std::string_view value = at == line.npos ? "" : line.substr(at + name.size());
    const std::string_view word = value.substr(0, value.find_first_of(",) "));
    if (hex_of(word)) {
      return std::string(word);
    }
  }
  return std::nullopt;
}

/// The line of the program that py-bt-full prints below a frame.
std::string source_below(std::string_view frame, const Lines& lines) {
  const bool source = is_full_py_bt(frame) && frame.ends_with(')') &&
                      lines.peek().starts_with("    ") && !begins_gdb_frame(lines.peek());
  return source ? base::elide(base::trim(lines.peek()), kLongestName) : std::string();
}

constexpr std::size_t kMostContinued = 16;  // continuation lines of one frame

/// The number of a frame with an address or a place; -1 if the line is none.
std::int64_t numbered_frame(std::string_view line) {
  if (!begins_gdb_frame(line)) {
    return -1;
  }
  line = base::trim(line).substr(1);
  const std::int64_t number = take_number(line, 100'000).value_or(-1);
  const bool address = base::trim(line).starts_with("0x") && line.find(" in ") != line.npos;
  return address || line.find(" (") != line.npos ? number : -1;
}

/// The lines of the frame at the cursor.
std::size_t length_of_frame(const Lines& lines) {
  std::size_t next = 1;
  while (next < kMostContinued && continues_gdb_frame(lines.peek(next))) {
    ++next;
  }
  return next;
}

}  // namespace

bool begins_gdb_frame(std::string_view line) {
  return frame_number(line).has_value();
}

bool is_old_py_bt(std::string_view line) {
  constexpr std::array<std::string_view, 3> kBeginnings = {
      "file '", "Waiting for a lock (e.g. GIL)", "<built-in method "};
  line = base::trim(line);
  const bool numbered = take_prefix(line, "#") && take_number(line, 10'000'000);
  line = base::trim(line);
  return numbered && std::any_of(kBeginnings.begin(), kBeginnings.end(),
                                 [line](auto beginning) { return line.starts_with(beginning); });
}

bool is_full_py_bt(std::string_view line) {
  line = base::trim(line);
  return take_prefix(line, "#") && take_number(line, 10'000'000) &&
         base::trim(line).starts_with("Frame 0x") && line.find(", for file ") != line.npos;
}

bool is_gdb_pager(std::string_view line) {
  return line.starts_with("---Type <return> to continue") || line.starts_with("--Type <RET> for");
}

bool continues_gdb_frame(std::string_view line) {
  const std::string_view text = base::trim(line);
  const bool place =
      line.starts_with(' ') && (text.starts_with("from /") || text.starts_with("at /"));
  return place ||
         (line.starts_with("    ") && !begins_gdb_frame(line) && !text.starts_with("File \""));
}

bool begins_bare_bt(const Lines& lines) {
  const auto numbered = [&lines](std::size_t ahead, std::string_view number) {
    std::string_view line = base::trim(lines.peek(ahead));
    return take_prefix(line, number) && line.starts_with(' ') &&
           (line.find(" in ") != line.npos || line.find(" (") != line.npos);
  };
  std::size_t next = 1;  // a long frame continues on lines of its own
  while (next < kMostContinued &&
         (continues_gdb_frame(lines.peek(next)) || is_gdb_pager(lines.peek(next)))) {
    ++next;
  }
  return numbered(0, "#0") && numbered(next, "#1");
}

bool begins_cut_bt(const Lines& lines) {
  const std::size_t next = length_of_frame(lines);
  const std::int64_t number = numbered_frame(lines.peek());
  const bool address = lines.peek().find(" 0x") != std::string_view::npos ||
                       lines.peek(next).find(" 0x") != std::string_view::npos;
  return number > 0 && numbered_frame(lines.peek(next)) == number + 1 && (address || next > 1);
}

bool begins_full_py_bt(const Lines& lines) {
  return is_full_py_bt(lines.peek()) && is_full_py_bt(lines.peek(length_of_frame(lines)));
}

model::Frame native_frame(std::string_view line) {
  line = base::trim(line);
  if (take_prefix(line, "#")) {
    take_number(line, 10'000'000);
    line = base::trim(line);
  }
  model::Frame frame;
  if (const auto address = hex_of(line.substr(0, line.find(' ')))) {
    frame.address = *address;
    line = base::trim(line.substr(std::min(line.find(' '), line.size())));
    take_prefix(line, "in ");
  }
  const std::size_t arguments = arguments_at(line);
  frame.function = native_name(line.substr(0, arguments));
  // Of glibc's futex functions: 0 = of this process alone, 128 = shared by processes.
  if (const auto scope = number_behind(line.substr(arguments), "private=", 255)) {
    frame.locals.emplace_back("private", std::to_string(*scope));
  }
  read_nccl_rank(line.substr(arguments), frame);
  read_place(line, frame);
  return frame;
}

std::optional<std::string> read_gdb_bt(Lines& lines, model::Thread& thread, StackDump& dump) {
  std::vector<model::Frame> frames;
  std::optional<std::string> mutex;
  std::int64_t last = -1;
  std::size_t native = 0;
  for (auto number = frame_number(lines.peek()); number && *number > last;
       number = frame_number(lines.peek())) {
    last = *number;
    std::string whole(lines.take());
    const std::string source = source_below(whole, lines);
    while (!lines.done() && continues_gdb_frame(lines.peek()) && whole.size() < kLongestName) {
      whole += ' ';
      whole += base::trim(lines.take());
    }
    auto python = frame_in_arguments(whole);
    python = python ? std::move(python) : frame_of_old_py_bt(whole);
    const bool only_python = is_old_py_bt(whole) || (python && is_full_py_bt(whole));
    if (python && !source.empty()) {
      dump.sources[python->file].try_emplace(python->line, source);
    }
    if (python && frames.size() < kMostFrames) {
      frames.push_back(std::move(*python));
    }
    if (!only_python && frames.size() < kMostFrames) {
      mutex = mutex || native > 3 ? mutex : mutex_in(whole);
      frames.push_back(native_frame(whole));
      ++native;
    }
    while (is_gdb_pager(lines.peek())) {
      lines.take();
    }
  }
  if (native == 0) {  // py-bt-full
    put_python_in(thread.frames, frames);
    return std::nullopt;
  }
  std::vector<model::Frame> python;
  std::copy_if(thread.frames.begin(), thread.frames.end(), std::back_inserter(python), is_python);
  const std::size_t known = thread.frames.size() - python.size();
  if (known == 0 || native > known) {
    if (std::none_of(frames.begin(), frames.end(), is_python)) {
      put_python_in(frames, python);
    }
    thread.frames = std::move(frames);
  }
  return mutex;
}

void read_py_bt(Lines& lines, model::Thread& thread, StackDump& dump) {
  lines.take();
  std::vector<model::Frame> python;
  while (!lines.done() && lines.peek().starts_with(' ') && python.size() < kMostFrames) {
    const std::string_view line = lines.take();
    if (python.empty() && base::trim(line) == "Waiting for the GIL") {
      thread.waits_on = model::WaitsOn{.kind = "gil", .target = {}, .detail = {}};
    }
    const std::string_view call = base::trim(line);
    if (python.empty() && model::is_call_of_buffered_file(call)) {
      model::Frame builtin;
      builtin.function = base::elide(call.substr(0, call.find(" at remote ")), kLongestName);
      python.push_back(std::move(builtin));
    } else if (auto frame = python_frame(line)) {
      // py-bt ends with the arguments: "in main (rank=3)".
      frame->function = frame->function.substr(0, frame->function.find(" ("));
      python.push_back(std::move(*frame));
    } else if (!python.empty() && line.starts_with("    ")) {
      const model::Frame& above = python.back();
      dump.sources[above.file].try_emplace(above.line, base::elide(base::trim(line), kLongestName));
    }
  }
  put_python_in(thread.frames, python);
}

}  // namespace ddpdoctor::imports
