// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/written_after.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/text.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestWritten = 12;  // lines of a message below its first one

/// torch writes the messages of CUDA and NCCL errors in several lines; most others have one line.
bool goes_on_below(std::string_view exception) {
  return exception.find("CUDA error") != exception.npos ||
         exception.find("NCCL error in: ") != exception.npos;
}

/// A failing process or its libraries may write such a line.
bool is_last_word(std::string_view text) {
  constexpr std::array<std::string_view, 10> kWords = {
      "[W",     "[E",   "[F", "[I", "terminate called", "Exception ignored",
      "wandb:", "NCCL", "W1", "E1"};
  return text.front() == ' ' || text.front() == '\t' ||
         std::any_of(kWords.begin(), kWords.end(),
                     [text](std::string_view word) { return text.starts_with(word); }) ||
         text.find("rror") != text.npos || text.find("xception") != text.npos ||
         text.find("NCCL INFO") != text.npos;
}

/// The letters of a line, which are the same in "step 7 loss 2.1" and "step 8 loss 1.9".
std::string likeness(std::string_view text) {
  constexpr std::size_t kLongest = 48;
  std::string out;
  for (const char c : text) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 && out.size() < kLongest) {
      out += c;
    }
  }
  return out;
}

/// torch's hook of uncaught exceptions writes "[rank3]: " before each line of a traceback with its
/// message; if the rank's other lines have that prefix, too, its launcher writes it.
bool written_by_hook(const model::Log& log, const Traceback& traceback) {
  if (!traceback.rank) {
    return false;
  }
  const std::string prefix = "[rank" + std::to_string(*traceback.rank) + "]: ";
  bool inside = false;
  std::size_t number = 0;
  for (const std::string_view raw : base::split(log.text, '\n')) {
    if (++number > traceback.number) {
      break;
    }
    if (!raw.starts_with(prefix)) {
      continue;
    }
    inside = inside || begins_traceback(raw);
    if (!inside) {
      return false;
    }
  }
  return inside;
}

/// mpirun's message after it ended the job.
bool is_end_by_mpirun(std::string_view line) {
  return base::contains(line, "detected that one or more processes exited with non-zero status") ||
         base::contains(line, "noticed that process rank ");
}

/// Counts the lines that one writer wrote after a traceback. The lines with the same prefix
/// directly below its exception are its message, if torch's hook wrote them.
class Sequel {
 public:
  Sequel(const Traceback& traceback, bool by_hook)
      : number_(traceback.number),
        in_message_(goes_on_below(traceback.exception)),
        hooked_(by_hook ? std::optional(traceback.number) : std::nullopt) {}

  void read(std::size_t number, std::string_view text) {
    const bool blank = base::trim(text).empty();
    if (hooked_ && number == *hooked_ + 1 && !text.starts_with("[")) {
      hooked_ = number;
      return;
    }
    if (number <= number_) {
      before_.insert(blank || is_last_word(text) ? std::string() : likeness(text));
      return;
    }
    const bool known = !blank && is_known(text);
    in_message_ = in_message_ && !blank && !known && number <= number_ + kLongestWritten;
    if (blank || in_message_ || is_last_word(text)) {
      return;
    }
    ++own_;
    like_earlier_ += known ? 1 : 0;
  }

  /// Lines after the traceback that do not belong to the failure.
  [[nodiscard]] int own() const {
    return own_;
  }
  /// Those of them that resemble a line before the traceback.
  [[nodiscard]] int like_earlier() const {
    return like_earlier_;
  }

 private:
  [[nodiscard]] bool is_known(std::string_view text) const {
    const std::string like = likeness(text);
    return !like.empty() && before_.contains(like);
  }

  std::size_t number_;  // line of the exception
  bool in_message_;
  std::optional<std::size_t> hooked_;  // the last line that torch's hook wrote
  std::set<std::string> before_;
  int own_ = 0;
  int like_earlier_ = 0;
};

}  // namespace

bool wrote_on(const model::JobModel& job, const Traceback& traceback) {
  constexpr int kEnough = 2;
  constexpr int kEnoughAlike = 5;
  if (traceback.rank && model::rank_process(job, *traceback.rank) != nullptr) {
    return false;
  }
  const model::Log& log = job.logs.at(traceback.log);
  Sequel sequel(traceback, written_by_hook(log, traceback));
  std::size_t number = 0;
  for (const std::string_view raw : base::split(log.text, '\n')) {
    const model::LogLine line = model::read_log_line(raw);
    ++number;
    if ((line.rank ? line.rank : log.rank) == traceback.rank) {
      sequel.read(number, line.text);
    }
  }
  return traceback.rank ? sequel.own() >= kEnough : sequel.like_earlier() >= kEnoughAlike;
}

bool output_goes_on(const model::JobModel& job) {
  constexpr int kFew = 3;
  int after = 0;
  for (const model::Log& log : job.logs) {
    int here = 0;
    bool ended = false;
    // An `ifconfig` or a table beside the log does not show that the job runs.
    bool told = job.logs.size() == 1;
    for (const std::string_view line : base::split(log.text, '\n')) {
      ended = ended || is_end_by_mpirun(line);
      const bool trouble = ended || line.find(" NCCL ") != line.npos || model::tells_trouble(line);
      told = told || trouble;
      here = trouble ? 0 : here + (base::trim(line).empty() ? 0 : 1);
    }
    after = told ? std::max(after, here) : after;
  }
  return after > kFew;
}

}  // namespace ddpdoctor::detectors
