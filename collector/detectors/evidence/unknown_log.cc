// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/unknown_log.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestRead = 4096;
constexpr std::size_t kLongestTrouble = 240;
constexpr std::size_t kLongestLast = 120;

/// A progress bar rewrites its line: the last text is what is left.
std::string_view as_shown(std::string_view line) {
  line = line.substr(0, line.find_last_not_of("\r \t") + 1);
  const std::size_t again = line.rfind('\r');
  return again == line.npos ? line : line.substr(again + 1);
}

}  // namespace

void quote_trouble(const model::JobModel& job, Finding& finding) {
  constexpr std::size_t kMostQuotes = 3;
  std::set<std::string> quoted;
  for (const model::Log& log : job.logs) {
    for (const std::string_view raw : base::split(log.text, '\n')) {
      if (quoted.size() == kMostQuotes) {
        return;
      }
      const model::LogLine line = model::read_log_line(raw.substr(0, kLongestRead));
      std::string text = base::elide(base::printable(base::trim(line.text)), kLongestTrouble);
      if (model::tells_trouble(raw) && !text.empty() && quoted.insert(text).second) {
        finding.evidence.push_back(
            {.rank = line.rank ? line.rank : log.rank, .text = "log: " + std::move(text)});
      }
    }
  }
}

std::optional<std::string> last_line_of_the_log(const model::JobModel& job) {
  if (job.logs.size() != 1) {
    return std::nullopt;
  }
  for (const model::Fact* bar : model::facts(job, "last-bar")) {
    return base::elide(bar->text("text").value_or(""), kLongestLast);
  }
  const auto lines = base::split(job.logs.front().text, '\n');
  for (auto raw = lines.rbegin(); raw != lines.rend(); ++raw) {
    const std::string_view shown = as_shown(*raw).substr(0, kLongestRead);
    const std::string_view text = base::trim(model::read_log_line(shown).text);
    const bool says = std::any_of(text.begin(), text.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c >= 0x80U;
    });
    if (says) {
      return base::elide(base::printable(text), kLongestLast);
    }
  }
  return std::nullopt;
}

std::optional<std::string> moving_bar(const model::JobModel& job) {
  for (const model::Fact* bar : model::facts(job, "last-bar")) {
    if (job.logs.size() == 1 && bar->flag("moves").value_or(false)) {
      return base::elide(bar->text("text").value_or(""), kLongestLast);
    }
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
