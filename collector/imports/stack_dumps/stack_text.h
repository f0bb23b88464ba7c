// SPDX-License-Identifier: Apache-2.0
// Common parts of the stack dump readers: lines under a cursor, the current process, and the
// notations that all tools share. A reader examines one line; if a dump of its tool begins there,
// it reads to the end of that dump. So dumps may follow each other in one file, with any text in
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

constexpr std::size_t kMostDumps = 70'000;  // processes in one file: a world and its workers
constexpr std::size_t kMostThreads = 4096;  // threads of one process
constexpr std::size_t kMostFrames = 2000;   // frames of one thread; Python's own limit is 1,000
constexpr std::size_t kLongestName = 4096;  // characters of a function, a file or a value
constexpr std::size_t kLongestLogLine = 65'536;

/// Locals of a native frame: arguments of a function of NCCL that makes a communicator.
constexpr std::string_view kNcclRank = "nccl_rank";
constexpr std::string_view kNcclSize = "nccl_ranks";

/// Lines with a cursor.
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

/// One process in one snapshot of one tool.
struct StackDump {
  model::Process process;  // pid 0: the tool does not show it
  std::string identity;    // what is the same when a process without a pid is dumped again
  std::optional<std::uint64_t> main_pointer;  // pthread_t of the main thread; fork copies it
  bool one_of_many = false;     // the tool was asked for one thread; there may be others
  std::optional<double> after;  // seconds without progress after which a faulthandler timer fired
  std::map<std::string, std::map<int, std::string>> sources;
};

/// A process without a known parent.
StackDump new_dump();

/// Appends within the limits; false if the thread is full.
bool add_frame(model::Thread& thread, model::Frame frame);

/// nullptr if the process is full.
model::Thread* add_thread(StackDump& dump, pid_t tid, std::string_view name);

/// Puts the main thread first: the one with tid = pid, else the one whose outermost Python frame is
/// a module.
void put_main_first(StackDump& dump);

/// The whole text as a number in [0, most].
std::optional<std::int64_t> number_of(std::string_view text, std::int64_t most);
/// Removes and returns the digits at the front of the text.
std::optional<std::int64_t> take_number(std::string_view& text, std::int64_t most);

/// All numbers of a text, in its order.
std::vector<std::int64_t> numbers_in(std::string_view text);

/// A thread of the process has a stack.
bool shows_frames(const model::Process& process);

/// The number directly after the first occurrence of a word.
std::optional<std::int64_t> number_behind(std::string_view text, std::string_view word,
                                          std::int64_t most);
std::optional<std::uint64_t> hex_of(std::string_view text);

std::optional<pid_t> pid_of(std::string_view text);

/// The kernel's thread id is unknown: the address of the thread replaces it, with a negative sign
/// to distinguish it from real ids. It is never shown, because people know the thread by its name
/// in the dump.
pid_t tid_for(std::string_view address);

/// Gives the threads without an id of a process without a pid ids that no other process has. `key`:
/// the same for all snapshots of this process.
void give_tids(std::string_view key, model::Process& process);

/// Removes the prefix if the text has it.
bool take_prefix(std::string_view& text, std::string_view prefix);

/// The text between two words; absent if either is missing.
std::optional<std::string_view> between(std::string_view text, std::string_view from,
                                        std::string_view to);

/// `File "/srv/train.py", line 57, in main` (Python, pystack, gdb) and `… line 57 in main`
/// (faulthandler): a Python frame.
std::optional<model::Frame> python_frame(std::string_view line);

/// "clock_nanosleep@GLIBC_2.2.5" → "clock_nanosleep"; C++ arguments are kept.
std::string native_name(std::string_view name);

/// The words of a command line as printed; quoting is not undone.
std::vector<std::string> words_of(std::string_view command);

/// True if a line of `head` begins with one of these (after blanks if `indented`).
bool has_line_with(std::string_view head, std::span<const std::string_view> beginnings);

}  // namespace ddpdoctor::imports
