// SPDX-License-Identifier: Apache-2.0
// macOS's `sample`: a call graph for each thread, outermost call first, with the number of samples
// in front of each function. Of functions called from one place, the one with most samples is
// first: that path is the stack.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_readers.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::string_view kTitle = "Analysis of sampling ";
constexpr std::string_view kGraph = "Call graph:";
constexpr std::size_t kMostBetweenTitleAndGraph = 40;

/// "    + 2866 main  (in python) + 125  [0x10164f11d]".
struct Sampled {
  std::size_t column = 0;
  std::string_view text;  // after the number
};

std::optional<Sampled> sampled(std::string_view line) {
  const std::size_t column = line.find_first_not_of(" +!:|");
  std::string_view rest = column == line.npos ? std::string_view() : line.substr(column);
  const auto count = take_number(rest, INT32_MAX);
  return count && rest.starts_with(' ')
             ? std::optional(Sampled{.column = column, .text = base::trim(rest)})
             : std::nullopt;
}

model::Frame frame_of(std::string_view text) {
  model::Frame frame;
  const std::size_t in = text.find("  (in ");
  frame.function = native_name(text.substr(0, in));
  if (in != text.npos) {
    const std::string_view module = text.substr(in + 6);
    frame.module = base::elide(module.substr(0, module.find(')')), kLongestName);
  }
  return frame;
}

/// "Thread_93633210   DispatchQueue_1: com.apple.main-thread  (serial)", "Thread_7: timer".
std::string name_of(std::string_view text) {
  const std::size_t colon = text.find(": ");
  std::string_view name = colon == text.npos ? text : base::trim(text.substr(colon + 2));
  return std::string(base::trim(name.substr(0, name.find("  ("))));
}

void read_graph(Lines& lines, StackDump& dump) {
  model::Thread* thread = nullptr;
  std::size_t depth = 0;  // column of the innermost frame so far; 0: its path has ended
  while (!lines.done()) {
    const auto one = sampled(lines.peek());
    if (!one) {
      break;
    }
    lines.take();
    if (one->text.starts_with("Thread_")) {
      const bool main = dump.process.threads.empty();
      thread = add_thread(dump, main ? dump.process.pid : 0, name_of(one->text));
      depth = one->column;
    } else if (thread != nullptr && depth > 0 && one->column > depth) {
      add_frame(*thread, frame_of(one->text));
      depth = one->column;
    } else {
      depth = 0;
    }
  }
  for (model::Thread& one : dump.process.threads) {
    std::reverse(one.frames.begin(), one.frames.end());
  }
}

}  // namespace

bool is_sample_title(std::string_view line) {
  return line.starts_with(kTitle) && line.find("(pid ") != line.npos;
}

bool read_sample(Lines& lines, std::vector<StackDump>& out) {
  if (out.size() >= kMostDumps || !is_sample_title(lines.peek())) {
    return false;
  }
  StackDump dump = new_dump();
  dump.process.pid = static_cast<pid_t>(number_behind(lines.peek(), "(pid ", kMaxPid).value_or(0));
  Lines ahead = lines;
  for (std::size_t i = 0; i < kMostBetweenTitleAndGraph && !ahead.done(); ++i) {
    if (ahead.take() == kGraph) {
      read_graph(ahead, dump);
      break;
    }
  }
  if (dump.process.threads.empty()) {
    return false;
  }
  lines = ahead;
  out.push_back(std::move(dump));
  return true;
}

}  // namespace ddpdoctor::imports
