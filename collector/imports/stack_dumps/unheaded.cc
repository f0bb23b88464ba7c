// SPDX-License-Identifier: Apache-2.0
// Stacks of which only the frames were pasted: the line that names the thread is missing. Nothing
// shows a pid or a thread id, so none is given. One stack is one process, unless its outermost
// frames are those of a thread that threading started: then it belongs to the stack next to it.
#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/headings.h"
#include "collector/imports/stack_dumps/stack_readers.h"
#include "collector/model/questions.h"

namespace ddpdoctor::imports {
namespace {

using FrameReader = std::optional<model::Frame> (*)(std::string_view line);

constexpr std::size_t kFewestUnheaded = 3;   // Python frames of py-spy; fewer may be a log's words
constexpr std::size_t kFewestOfTimer = 2;    // of faulthandler, whose form no other writer has
constexpr std::size_t kMostBetweenRuns = 6;  // lines of prose between two stacks of one process

/// `main`, `<module>`, `Trainer.fit`, `<lambda>`.
bool is_function_name(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '<' || c == '>' || c >= 0x80;
         });
}

/// "wait (threading.py:320)"; a native frame counts between Python frames only.
std::optional<model::Frame> unheaded_py_spy_frame(std::string_view line) {
  auto frame = py_spy_frame(line);
  const bool python = frame && frame->language == model::Language::kPython;
  if (python && is_function_name(frame->function) && frame->line > 0 &&
      (frame->file.ends_with(".py") || frame->file.starts_with('<') ||
       (frame->function == "<module>" && frame->file.find(' ') == std::string::npos))) {
    return frame;
  }
  const bool native = frame && !python &&
                      (frame->module.find(".so") != std::string::npos ||
                       frame->module.starts_with("python") || !frame->file.empty());
  return native ? frame : std::nullopt;
}

/// "...": a person who copied the stack left out frames.
bool is_gap(std::string_view line) {
  line = base::trim(line);
  return line.size() >= 2 && line.find_first_not_of(".[]") == line.npos;
}

struct Run {
  std::vector<model::Frame> frames;
  std::size_t python = 0;
};

Run read_run(Lines& lines, FrameReader read) {
  Run run;
  while (!lines.done() && run.frames.size() < kMostFrames) {
    auto frame = read(lines.peek());
    if (!frame && !(is_gap(lines.peek()) && read(lines.peek(1)))) {
      break;
    }
    lines.take();
    if (frame) {
      run.python += frame->language == model::Language::kPython ? 1 : 0;
      run.frames.push_back(std::move(*frame));
    }
  }
  return run;
}

/// The outermost frame of a thread that is not the main one.
bool is_of_thread(const Run& run) {
  return run.frames.back().function.ends_with("_bootstrap") &&
         base::file_name(run.frames.back().file) == "threading.py";
}

/// The next stack, if only prose without a rank is in between.
std::optional<Run> next_run(Lines& lines, FrameReader read, std::size_t fewest) {
  Lines ahead = lines;
  for (std::size_t i = 0; i < kMostBetweenRuns && !ahead.done(); ++i) {
    if (read(ahead.peek())) {
      Run run = read_run(ahead, read);
      if (run.python < fewest) {
        return std::nullopt;
      }
      lines = ahead;
      return run;
    }
    if (!heading_of(ahead.take()).empty()) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

/// A frame outside the libraries: an excerpt of a library's own frames may be of any process.
bool shows_program(const model::Process& process) {
  return std::any_of(process.threads.begin(), process.threads.end(), [](const auto& thread) {
    return std::any_of(thread.frames.begin(), thread.frames.end(), [](const auto& frame) {
      return frame.language == model::Language::kPython &&
             (frame.function == "<module>" || model::is_user_file(frame.file));
    });
  });
}

bool read_unheaded(Lines& lines, std::vector<StackDump>& out, FrameReader read,
                   std::size_t fewest) {
  if (out.size() >= kMostDumps || !read(lines.peek())) {
    return false;
  }
  const std::size_t start = lines.at();
  Lines ahead = lines;
  Run run = read_run(ahead, read);
  if (run.python < fewest) {
    return false;
  }
  StackDump dump = new_dump();
  bool main = false;
  for (std::optional<Run> one = std::move(run); one;) {
    model::Thread* thread = add_thread(dump, 0, {});
    if (thread == nullptr) {
      break;
    }
    main = main || !is_of_thread(*one);
    thread->frames = std::move(one->frames);
    lines = ahead;
    one = next_run(ahead, read, fewest);
    if (one && main && !is_of_thread(*one)) {
      one.reset();  // the main thread of another process
    }
  }
  if (!shows_program(dump.process)) {
    return true;
  }
  dump.one_of_many = dump.process.threads.size() == 1;
  dump.identity = fmt::format("line {}", start);
  put_main_first(dump);
  out.push_back(std::move(dump));
  return true;
}

}  // namespace

std::optional<model::Frame> faulthandler_frame(std::string_view line) {
  const std::size_t in = line.find(" in ", line.find("\", line "));
  return in == line.npos || line.find(", in ") != line.npos ? std::nullopt : python_frame(line);
}

bool has_unheaded_stack(std::string_view head) {
  const auto lines = base::split(head, '\n');
  std::size_t run = 0;
  return std::any_of(lines.begin(), lines.end(), [&run](std::string_view line) {
    const auto frame = unheaded_py_spy_frame(line);
    run = frame && frame->language == model::Language::kPython ? run + 1 : 0;
    return run >= kFewestUnheaded;
  });
}

bool read_unheaded_py_spy(Lines& lines, std::vector<StackDump>& out) {
  return read_unheaded(lines, out, unheaded_py_spy_frame, kFewestUnheaded);
}

bool read_unheaded_faulthandler(Lines& lines, std::vector<StackDump>& out) {
  return read_unheaded(lines, out, faulthandler_frame, kFewestOfTimer);
}

}  // namespace ddpdoctor::imports
