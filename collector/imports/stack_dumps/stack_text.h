// SPDX-License-Identifier: Apache-2.0
// What the readers of stack dumps share: lines under a cursor, the process being read, and the
// words that all tools write alike. A reader looks at one line; if a dump of its tool begins there,
// it reads to the end of that dump. So dumps may follow each other in one file, with anything
// between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/model/job_model.h"

namespace ddpdoctor::imports {

constexpr std::size_t kMostDumps = 70'000;  // processes of one file: a world and its workers
constexpr std::size_t kMostThreads = 4096;  // of one process
constexpr std::size_t kMostFrames = 2000;   // of one thread; Python stops at 1,000 by itself
constexpr std::size_t kLongestName = 4096;  // of a function, a file, a value

/// Lines and a place among them.
class Lines {
 public:
  explicit Lines(std::span<const std::string_view> all) : all_(all) {}

  [[nodiscard]] bool done() const {
    return at_ >= all_.size();
  }
  /// The line at the cursor or `ahead` of it; empty at the end.
  [[nodiscard]] std::string_view peek(std::size_t ahead = 0) const {
    return ahead < all_.size() - at_ ? all_[at_ + ahead] : std::string_view();
  }
  std::string_view take() {
    return done() ? std::string_view() : all_[at_++];
  }
  [[nodiscard]] std::size_t at() const {
    return at_;
  }

 private:
  std::span<const std::string_view> all_;
  std::size_t at_ = 0;
};

/// One process as one tool saw it once.
struct StackDump {
  model::Process process;  // pid 0: the tool does not say
  std::string identity;    // what stays the same when the process is dumped again and has no pid
  std::optional<double> after;  // seconds without progress that a timer of faulthandler had waited
  std::map<std::string, std::map<int, std::string>> sources;
};

/// A process that nobody is the parent of, as far as the text says.
StackDump new_dump();

/// Appends within the caps; false when the thread has all it may have.
bool add_frame(model::Thread& thread, model::Frame frame);

/// nullptr when the process has all it may have.
model::Thread* add_thread(StackDump& dump, pid_t tid, std::string_view name);

/// Main thread first: that of the pid, else the one whose outermost Python frame is a module.
void put_main_first(StackDump& dump);

/// The whole text as a number within [0, most].
std::optional<std::int64_t> number_of(std::string_view text, std::int64_t most);
/// The digits at the front of the text, taken off.
std::optional<std::int64_t> take_number(std::string_view& text, std::int64_t most);
std::optional<std::uint64_t> hex_of(std::string_view text);

std::optional<pid_t> pid_of(std::string_view text);

/// Taken off when it is there.
bool take_prefix(std::string_view& text, std::string_view prefix);

/// What stands between two words; absent when one of them is.
std::optional<std::string_view> between(std::string_view text, std::string_view from,
                                        std::string_view to);

/// `File "/srv/train.py", line 57, in main` (Python, pystack, gdb) and `… line 57 in main`
/// (faulthandler): a Python frame.
std::optional<model::Frame> python_frame(std::string_view line);

/// "clock_nanosleep@GLIBC_2.2.5" → "clock_nanosleep"; arguments of C++ stay.
std::string native_name(std::string_view name);

/// Words of a command line as a person sees it; quoting is not undone.
std::vector<std::string> words_of(std::string_view command);

/// Whether a line of `head` begins with one of these (after blanks when `indented`).
bool has_line_with(std::string_view head, std::span<const std::string_view> beginnings);

}  // namespace ddpdoctor::imports
