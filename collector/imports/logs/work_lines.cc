// SPDX-License-Identifier: Apache-2.0
// Steps are lines that differ only in their numbers: a whole number counts up evenly, and a decimal
// (a loss, a speed) rises and falls. A repeated message of a wait has only counters.
#include "collector/imports/logs/work_lines.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "collector/imports/logs/progress_bars.h"
#include "collector/imports/stack_dumps/python_traceback.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostStepShapes = 256;
constexpr std::size_t kNewest = 4;  // lines of one shape that are compared
constexpr std::size_t kLongestStep = 400;
constexpr std::size_t kLongestWorkQuote = 200;

bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

/// A line as its words and its numbers.
struct Shape {
  std::string words;  // each number is '0'
  std::vector<std::int64_t> wholes;
  std::vector<double> decimals;
};

Shape step_shape_of(std::string_view line) {
  Shape out;
  for (std::size_t at = 0; at < line.size();) {
    if (!is_decimal_digit(line[at])) {
      out.words += line[at++];
      continue;
    }
    const std::size_t end = std::min(line.find_first_not_of("0123456789", at), line.size());
    std::size_t last = end;
    if (end + 1 < line.size() && line[end] == '.' && is_decimal_digit(line[end + 1])) {
      last = std::min(line.find_first_not_of("0123456789", end + 1), line.size());
    }
    const auto whole = number_of(line.substr(at, end - at), std::int64_t{1} << 50U);
    if (last == end) {
      out.wholes.push_back(whole.value_or(0));
    } else {
      const auto part =
          number_of(line.substr(end + 1, std::min<std::size_t>(last - end - 1, 9)), 1'000'000'000);
      double scale = 1;
      for (std::size_t i = end + 1; i < std::min(last, end + 10); ++i) {
        scale /= 10;
      }
      out.decimals.push_back(static_cast<double>(whole.value_or(0)) +
                             static_cast<double>(part.value_or(0)) * scale);
    }
    out.words += '0';
    at = last;
  }
  return out;
}

/// One whole number counts up evenly.
bool counts(const std::deque<Shape>& lines) {
  for (std::size_t i = 0; i < lines.front().wholes.size(); ++i) {
    const std::int64_t step = lines[1].wholes[i] - lines[0].wholes[i];
    bool even = step > 0;
    for (std::size_t k = 2; k < lines.size(); ++k) {
      even = even && lines[k].wholes[i] - lines[k - 1].wholes[i] == step;
    }
    if (even) {
      return true;
    }
  }
  return false;
}

/// One decimal rises and falls.
bool measures(const std::deque<Shape>& lines) {
  for (std::size_t i = 0; i < lines.front().decimals.size(); ++i) {
    bool rises = false;
    bool falls = false;
    for (std::size_t k = 1; k < lines.size(); ++k) {
      rises = rises || lines[k].decimals[i] > lines[k - 1].decimals[i];
      falls = falls || lines[k].decimals[i] < lines[k - 1].decimals[i];
    }
    if (rises && falls) {
      return true;
    }
  }
  return false;
}

bool is_of_a_library(std::string_view text) {
  constexpr std::array<std::string_view, 8> kMarks = {
      "[W", "[E", "[I", "[F", "NCCL INFO", "NCCL WARN", "torch/distributed/", "ProcessGroup"};
  return base::contains_any(text.substr(0, kLongestWorkQuote), kMarks);
}

/// The program itself says that what it begins takes long.
bool announces_long_work(std::string_view text) {
  constexpr std::array<std::string_view, 6> kWords = {
      "may take some time",   "may take a while",   "may take a long time",
      "might take some time", "might take a while", "can take a while"};
  return base::contains_any(text, kWords);
}

/// Reads the lines in order.
class Reader {
 public:
  void read(const model::LogLine& line);
  void settle(model::JobModel& job) const;

 private:
  void read_step(const model::LogLine& line);

  bool waited_ = false;  // a rank has timed out
  std::map<std::optional<model::Rank>, bool> raising_;
  std::map<std::string, std::deque<Shape>> steps_;
  std::optional<model::LogLine> moved_;      // the newest step after the timeout
  std::optional<model::LogLine> announced_;  // before the timeout
  std::map<std::optional<model::Rank>, std::string_view> last_;
};

void Reader::read_step(const model::LogLine& line) {
  Shape shape = step_shape_of(line.text.substr(0, kLongestStep));
  const std::string key = shape.words.substr(0, kLongestStep);
  if (shape.wholes.empty() || shape.decimals.empty() ||
      (steps_.size() >= kMostStepShapes && !steps_.contains(key))) {
    return;
  }
  std::deque<Shape>& newest = steps_[key];
  newest.push_back(std::move(shape));
  if (newest.size() > kNewest) {
    newest.pop_front();
  }
  if (waited_ && newest.size() == kNewest && counts(newest) && measures(newest)) {
    moved_ = line;
  }
}

void Reader::read(const model::LogLine& line) {
  bool& raising = raising_[line.rank];
  if (ends_wait(line.text)) {
    waited_ = true;
    raising = false;
    return;
  }
  if (line.text.find(kTracebackHeading) != line.text.npos) {
    raising = true;
    return;
  }
  const bool bar = line.text.find("%|") != line.text.npos;
  if (raising) {
    raising = line.text.starts_with(' ');
    return;
  }
  if (bar || base::trim(line.text).size() < 4 || line.text.starts_with(' ') ||
      is_of_a_library(line.text) || model::tells_trouble(line.text)) {
    return;
  }
  read_step(line);
  if (!waited_) {
    last_[line.rank] = line.text;
    announced_ = announces_long_work(line.text) ? std::optional(line) : announced_;
  }
}

void Reader::settle(model::JobModel& job) const {
  const auto add = [&job](std::string_view kind, std::optional<model::Rank> rank,
                          std::string_view text) {
    model::Fact fact{.rank = rank, .pid = {}, .kind = std::string(kind), .fields = {}};
    fact.fields["text"] = base::elide(base::printable(base::trim(text)), kLongestWorkQuote);
    job.facts.push_back(std::move(fact));
  };
  if (!waited_) {
    return;
  }
  if (moved_) {
    add("progress-line", moved_->rank, moved_->text);
  }
  if (announced_) {
    add("announced-work", announced_->rank, announced_->text);
  }
  for (const auto& [rank, text] : last_) {
    add("last-message", rank, text);
  }
}

}  // namespace

void read_work_lines(std::string_view text, model::JobModel& job) {
  if (!ends_wait(text)) {
    return;
  }
  Reader reader;
  for (const std::string_view line : base::split(text, '\n')) {
    reader.read(model::read_log_line(line.substr(0, kLongestLogLine)));
  }
  reader.settle(job);
}

}  // namespace ddpdoctor::imports
