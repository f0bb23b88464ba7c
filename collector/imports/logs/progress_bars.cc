// SPDX-License-Identifier: Apache-2.0
// tqdm draws a bar again only when it moves, and once more when the process is ended: the elapsed
// time in that last drawing, less that of the last move, is how long the bar did not move.
#include "collector/imports/logs/progress_bars.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "collector/imports/stack_dumps/stack_text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
namespace {

constexpr std::size_t kMostBars = 256;
constexpr std::size_t kLongestBarName = 80;
constexpr double kShortestWait = 300;  // seconds; the store's own timeout, the shortest default

/// Texts of torch and gloo where a wait for another rank ends.
constexpr std::array<std::string_view, 6> kEndsOfWait = {"collective operation timeout: Work",
                                                         "Timed out waiting ",
                                                         "wait timeout after ",
                                                         "Socket Timeout",
                                                         "Wait timeout",
                                                         "failed to pass monitoredBarrier"};

/// In seconds; the shortest usual one if the line does not tell it.
double length_of_wait(std::string_view line) {
  constexpr std::int64_t kMost = std::int64_t{1} << 40U;
  for (const std::string_view words :
       {" ran for ", "Timed out waiting ", "wait timeout after ", "monitoredBarrier in "}) {
    if (const auto told = number_behind(line, words, kMost)) {
      return static_cast<double>(*told) / 1000;
    }
  }
  return kShortestWait;
}

/// One drawing: "train: Caching images (29.7GB ram):  80%|████  | 33886/41999 [29:39<18:09, …".
struct Drawing {
  std::string_view name;
  std::string_view done;
  std::string_view total;
  double elapsed = 0;  // seconds
};

/// "29:39", "1:02:03" → seconds.
std::optional<double> elapsed_of(std::string_view text) {
  double out = 0;
  for (const std::string_view part : base::split(text, ':')) {
    const auto number = number_of(part, 1'000'000);
    if (!number) {
      return std::nullopt;
    }
    out = out * 60 + static_cast<double>(*number);
  }
  return text.find(':') == text.npos ? std::nullopt : std::optional(out);
}

std::optional<Drawing> drawing_in(std::string_view line) {
  const std::size_t less = line.find('<');
  const std::size_t open = less == line.npos ? less : line.rfind(" [", less);
  const std::size_t bar = open == line.npos ? open : line.rfind('|', open);
  const std::size_t percent = bar == line.npos ? bar : line.substr(0, bar).find("%|");
  const auto elapsed =
      percent == line.npos ? std::nullopt : elapsed_of(line.substr(open + 2, less - open - 2));
  const std::string_view count =
      elapsed ? base::trim(line.substr(bar + 1, open - bar - 1)) : std::string_view();
  const std::size_t slash = count.find('/');
  if (slash == count.npos) {
    return std::nullopt;
  }
  std::string_view name = line.substr(0, percent);
  name = base::trim(name.substr(0, name.find_last_not_of("0123456789") + 1));
  return Drawing{.name = name.ends_with(':') ? name.substr(0, name.size() - 1) : name,
                 .done = count.substr(0, slash),
                 .total = count.substr(slash + 1),
                 .elapsed = *elapsed};
}

/// Numbers in the name of a bar change while it moves.
std::string without_digits(std::string_view name) {
  std::string out(name);
  std::erase_if(out, [](char c) { return c >= '0' && c <= '9'; });
  return out;
}

struct Bar {
  std::optional<model::Rank> rank;
  std::string name;
  std::string done;
  std::string total;
  double elapsed = 0;
  double moved = 0;  // elapsed time of its last move
  int moves = 0;
  bool drawn_after = false;  // after the first watchdog had ended a wait

  void draw(const Drawing& drawing, bool after) {
    const bool anew = drawing.elapsed < elapsed || drawing.total != total;  // of the same name
    if (anew && after && moves > 0) {
      return;  // begun when the wait was over
    }
    if (anew) {
      moves = 0;
      drawn_after = false;
    }
    if (drawing.done != done) {
      moved = drawing.elapsed;
      ++moves;
    }
    if (anew || !name.ends_with(drawing.name)) {  // else its beginning was cut off
      name = base::elide(drawing.name, kLongestBarName);
    }
    done = base::elide(drawing.done, 32);
    total = base::elide(drawing.total, 32);
    elapsed = drawing.elapsed;
    drawn_after = drawn_after || after;
  }
};

/// It moved while others waited for so many seconds: it was drawn again, or its only drawing, where
/// the wait ended, has counted for as long.
bool moved_during(const Bar& bar, double waited) {
  constexpr double kNearly = 0.9;
  const bool counted =
      bar.moves == 1 && bar.drawn_after && bar.done != "0" && bar.elapsed >= kNearly * waited;
  return (bar.moves > 1 || counted) && bar.elapsed - bar.moved <= waited / 2;
}

/// By name without digits.
using Bars = std::map<std::string, Bar>;

/// The key of a drawing. Processes that write into one stream cut lines: the name of a known bar
/// may lack its beginning.
std::string key_of(const Drawing& drawing, const Bars& bars) {
  constexpr std::size_t kShortestRest = 8;
  std::string key = without_digits(drawing.name);
  if (key.size() >= kShortestRest && !bars.contains(key)) {
    for (const auto& [known, bar] : bars) {
      if (known.ends_with(key) && bar.total == drawing.total) {
        return known;
      }
    }
  }
  return key;
}

/// The lines between the heading of a traceback that ends in such a timeout and its end: the rank
/// had given up before it printed the first of them.
std::vector<bool> tracebacks_of_timeouts(const std::vector<std::string_view>& lines) {
  constexpr std::size_t kLongest = 300;
  std::vector<bool> out(lines.size(), false);
  std::size_t begun = lines.size();  // none
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (begun == lines.size()) {
      begun = lines[i].find("Traceback (most recent call last)") != lines[i].npos ? i : begun;
    } else if (i - begun > kLongest) {
      begun = lines.size();
    } else if (ends_wait(lines[i])) {
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(begun) + 1,
                out.begin() + static_cast<std::ptrdiff_t>(i) + 1, true);
      begun = lines.size();
    }
  }
  return out;
}

std::string with_single_blanks(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' || !out.ends_with(' ')) {
      out += c;
    }
  }
  return out;
}

/// The bar at the end of a log, and whether it moved; nothing if the log ends with another line.
void read_last_bar(std::string_view text, model::JobModel& job) {
  constexpr std::size_t kLongestBar = 200;
  constexpr int kFewestMoves = 3;
  constexpr std::size_t kMostLinesBack = 200;
  const auto lines = base::split(text, '\n');
  std::string key;
  std::string last;
  std::optional<model::Rank> rank;
  std::set<std::string> done;
  std::size_t back = 0;
  for (auto line = lines.rbegin(); line != lines.rend() && ++back < kMostLinesBack; ++line) {
    const auto parts = base::split(line->substr(0, kLongestLogLine), '\r');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      const model::LogLine told = model::read_log_line(*part);
      const auto drawing = drawing_in(told.text);
      if (!drawing && !base::trim(told.text).empty() && last.empty()) {
        return;  // the log ends with another line
      }
      if (!drawing) {
        continue;
      }
      if (last.empty()) {
        key = without_digits(drawing->name);
        last = base::elide(base::printable(with_single_blanks(base::trim(told.text))), kLongestBar);
        rank = told.rank;
      }
      if (without_digits(drawing->name) == key && done.size() < kMostBars) {
        done.emplace(drawing->done);
      }
    }
  }
  if (last.empty()) {
    return;
  }
  model::Fact fact{.rank = rank, .pid = {}, .kind = "last-bar", .fields = {}};
  fact.fields["text"] = std::move(last);
  fact.fields["moves"] = done.size() >= kFewestMoves;
  job.facts.push_back(std::move(fact));
}

}  // namespace

bool ends_wait(std::string_view line) {
  return base::contains_any(line, kEndsOfWait);
}

void read_progress_bars(std::string_view text, model::JobModel& job) {
  read_last_bar(text, job);
  if (text.find("%|") == text.npos || !ends_wait(text)) {
    return;
  }
  Bars bars;
  double waited = 0;  // the shortest wait that a watchdog ended
  const auto lines = base::split(text, '\n');
  const std::vector<bool> raising = tracebacks_of_timeouts(lines);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = lines[i];
    if (ends_wait(line)) {
      const double seconds = length_of_wait(line);
      waited = waited > 0 ? std::min(waited, seconds) : seconds;
    }
    if (line.find("%|") == line.npos) {
      continue;
    }
    for (const std::string_view part : base::split(line, '\r')) {
      const model::LogLine told = model::read_log_line(part.substr(0, kLongestLogLine));
      const auto drawing = drawing_in(told.text);
      if (!drawing) {
        continue;
      }
      const std::string key = key_of(*drawing, bars);
      if (bars.size() < kMostBars || bars.contains(key)) {
        bars[key].rank = told.rank;
        bars[key].draw(*drawing, waited > 0 || raising[i]);
      }
    }
  }
  for (const auto& [key, bar] : bars) {
    if (waited > 0 && bar.done != bar.total && moved_during(bar, waited)) {
      model::Fact fact{.rank = bar.rank,
                       .pid = {},
                       .kind = bar.drawn_after ? "progress-bar" : "unfinished-bar",
                       .fields = {}};
      fact.fields["text"] = bar.name;
      fact.fields["done"] = bar.done;
      fact.fields["total"] = bar.total;
      job.facts.push_back(std::move(fact));
    }
  }
}

}  // namespace ddpdoctor::imports
