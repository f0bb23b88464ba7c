// SPDX-License-Identifier: Apache-2.0
// Steps are lines of one shape in which one number rises from line to line and another one changes:
// "step 31: loss 2.13", a bar with its rate. A line that only counts seconds of waiting has one
// number; frames, NCCL's channels and tables of a launcher are not steps.
#include "collector/diagnosis/overcome.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "collector/detectors/evidence/origins.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::diagnosis {
namespace {

constexpr std::size_t kLongestStep = 400;  // characters of a line
constexpr std::size_t kMostFields = 24;    // numbers of a line
constexpr std::size_t kMostShapes = 512;
constexpr std::size_t kShortestQuote = 12;
constexpr std::size_t kLongestQuote = 80;
constexpr int kSteps = 4;  // rises in a row
constexpr int kChanges = 2;

/// Numbers of the lines of one shape.
struct Counter {
  std::vector<double> last;
  std::vector<int> rises;  // in a row, of each number
  std::vector<int> changes;
};

struct Numbers {
  std::string shape;
  std::vector<double> values;
};

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

Numbers numbers_of(std::string_view line) {
  Numbers out;
  for (std::size_t at = 0; at < line.size();) {
    if (!is_digit(line[at])) {
      out.shape += line[at++];
      continue;
    }
    double value = 0;
    const char* const begin = line.data() + at;
    const auto [end, error] =
        std::from_chars(begin, line.data() + line.size(), value, std::chars_format::fixed);
    at += std::max<std::size_t>(1, static_cast<std::size_t>(end - begin));
    out.shape += '#';
    if (error == std::errc() && out.values.size() < kMostFields) {
      out.values.push_back(value);
    }
  }
  return out;
}

bool may_be_a_step(std::string_view line) {
  constexpr std::array<std::string_view, 7> kOthers = {
      " NCCL ", "frame #", " in ?? ", "File \"", "+0x", ".cpp:", ".cc:"};  // libraries in C++
  return !line.empty() && line.front() != '#' &&
         std::none_of(kOthers.begin(), kOthers.end(),
                      [line](std::string_view word) { return line.find(word) != line.npos; });
}

/// Without "W0817 17:40:50.407000 22745651681088 torch/distributed/run.py:779] " of torch's
/// launcher, whose time rises from line to line.
std::string_view without_glog_prefix(std::string_view line) {
  constexpr std::size_t kLongestPrefix = 200;
  constexpr std::string_view kLevels = "IWEF";
  const bool begins = line.size() > 5 && kLevels.find(line.front()) != kLevels.npos &&
                      is_digit(line[1]) && is_digit(line[2]) && is_digit(line[3]) &&
                      is_digit(line[4]) && line[5] == ' ';
  const std::size_t end = begins ? line.substr(0, kLongestPrefix).find("] ") : line.npos;
  return end == line.npos ? line : line.substr(end + 2);
}

bool counts_on(Counter& counter, const std::vector<double>& values) {
  if (counter.last.size() != values.size()) {
    counter = {.last = values,
               .rises = std::vector<int>(values.size()),
               .changes = std::vector<int>(values.size())};
    return false;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    counter.rises[i] = values[i] > counter.last[i]   ? counter.rises[i] + 1
                       : values[i] < counter.last[i] ? 0
                                                     : counter.rises[i];
    counter.changes[i] += values[i] != counter.last[i] ? 1 : 0;
  }
  counter.last = values;
  const auto rising = std::find_if(counter.rises.begin(), counter.rises.end(),
                                   [](int rises) { return rises >= kSteps; });
  if (rising == counter.rises.end()) {
    return false;
  }
  return std::count_if(counter.changes.begin(), counter.changes.end(),
                       [](int changes) { return changes >= kChanges; }) > 1;
}

bool steps_in(std::string_view text) {
  std::map<std::pair<std::optional<model::Rank>, std::string>, Counter> counters;
  for (const std::string_view raw : base::split(text, '\n')) {
    const model::LogLine line = model::read_log_line(raw.substr(0, kLongestStep));
    if (!may_be_a_step(line.text)) {
      continue;
    }
    Numbers numbers = numbers_of(without_glog_prefix(line.text));
    if (numbers.values.size() < 2) {
      continue;
    }
    std::pair key(line.rank, std::move(numbers.shape));
    const bool known = counters.contains(key);
    if ((known || counters.size() < kMostShapes) &&
        counts_on(counters[std::move(key)], numbers.values)) {
      return true;
    }
  }
  return false;
}

/// The beginning of the quoted line, if that is enough to find the line again.
std::optional<std::string_view> beginning_of(const detectors::Evidence& evidence) {
  std::string_view quote = detectors::quote_in(evidence).substr(0, kLongestQuote);
  quote = quote.substr(0, quote.find("…"));
  return quote.size() < kShortestQuote ? std::nullopt : std::optional(quote);
}

/// Steps follow all quoted lines of the log that has the last one.
bool was_overcome(const detectors::Finding& finding, const model::JobModel& job) {
  bool found = false;
  for (const model::Log& log : job.logs) {
    std::size_t last = std::string::npos;
    for (const detectors::Evidence& evidence : finding.evidence) {
      const auto quote = beginning_of(evidence);
      const std::size_t at = quote ? log.text.rfind(*quote) : std::string::npos;
      last = at == std::string::npos ? last : last == std::string::npos ? at : std::max(last, at);
    }
    if (last == std::string::npos) {
      continue;
    }
    found = true;
    const std::size_t below = std::min(log.text.find('\n', last), log.text.size());
    if (!steps_in(std::string_view(log.text).substr(below))) {
      return false;
    }
  }
  return found;
}

}  // namespace

void doubt_what_was_overcome(std::vector<Judged>& findings, const model::JobModel& job) {
  for (Judged& judged : findings) {
    if (judged.finding.confidence != detectors::Confidence::kPossible &&
        detectors::rests_on_text(judged.finding) && was_overcome(judged.finding, job)) {
      judged.finding.confidence = detectors::Confidence::kPossible;
    }
  }
}

}  // namespace ddpdoctor::diagnosis
