// SPDX-License-Identifier: Apache-2.0
#include "collector/imports/stack_dumps/shown_sources.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "base/text.h"
#include "collector/imports/capture/parts.h"
#include "collector/imports/stack_dumps/stack_text.h"

namespace ddpdoctor::imports {
namespace {

using std::string_view;

constexpr std::int64_t kMostShown = 200;  // lines of one command

/// Lines first to last of a file.
struct Shown {
  std::int64_t first = 0;
  std::int64_t last = 0;
  string_view file;
};

/// "% sed -n 145p util/spawn.py", "$ sed -n '140,150p' util/spawn.py".
std::optional<Shown> shown_by(string_view line) {
  constexpr string_view kCommand = "sed -n ";
  const std::size_t at = line.find(kCommand);
  if (at == line.npos) {
    return std::nullopt;
  }
  line = base::trim(line.substr(at + kCommand.size()));
  const string_view quote =
      line.starts_with('\'') || line.starts_with('"') ? line.substr(0, 1) : "";
  line.remove_prefix(quote.size());
  const auto first = take_number(line, kMaxLine);
  const auto last = take_prefix(line, ",") ? take_number(line, kMaxLine) : first;
  const bool prints = take_prefix(line, "p") && line.starts_with(quote);
  line = prints ? base::trim(line.substr(quote.size())) : string_view();
  const bool one_file = !line.empty() && line.find_first_of(" |;&") == line.npos;
  return first && last && one_file && *first > 0 && *first <= *last && *last - *first < kMostShown
             ? std::optional(Shown{.first = *first, .last = *last, .file = line})
             : std::nullopt;
}

/// One of them is the end of the other, from a folder on: tools shorten paths.
bool is_same_file(string_view one, string_view other) {
  while (take_prefix(one, "./")) {
  }
  const string_view longer = one.size() > other.size() ? one : other;
  const string_view shorter = one.size() > other.size() ? other : one;
  return !shorter.empty() && longer.ends_with(shorter) &&
         (longer.size() == shorter.size() || shorter.starts_with('/') ||
          longer[longer.size() - shorter.size() - 1] == '/');
}

std::set<std::string> files_of_frames(const model::JobModel& job) {
  std::set<std::string> out;
  for (const model::Observation& observation : job.observations) {
    for (const model::Process& process : observation.processes) {
      for (const model::Thread& thread : process.threads) {
        for (const model::Frame& frame : thread.frames) {
          if (frame.language == model::Language::kPython) {
            out.insert(frame.file);
          }
        }
      }
    }
  }
  return out;
}

}  // namespace

void read_shown_sources(std::span<const string_view> lines, model::JobModel& job) {
  std::optional<std::set<std::string>> files;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const auto shown = shown_by(lines[i].substr(0, kLongestName));
    if (!shown) {
      continue;
    }
    if (!files) {
      files = files_of_frames(job);
    }
    const auto output = lines.subspan(i + 1);
    const auto count = static_cast<std::size_t>(shown->last - shown->first + 1);
    for (const std::string& file : *files) {
      if (!is_same_file(shown->file, file)) {
        continue;
      }
      int number = static_cast<int>(shown->first);
      for (const string_view line : output.first(std::min(count, output.size()))) {
        job.sources[file].try_emplace(number++, base::elide(line, kLongestName));
      }
    }
  }
}

}  // namespace ddpdoctor::imports
