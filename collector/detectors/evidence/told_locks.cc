// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/told_locks.h"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestLockLine = 4096;
constexpr std::size_t kMostLocks = 64;

struct ToldLocks {
  std::vector<std::string> paths;  // as they were first named
  std::string line;                // the last of the messages
  int times = 0;
};

/// The path in a message; it may hold blanks, so what follows it ends it.
std::optional<std::string_view> lock_in(std::string_view line) {
  constexpr std::string_view kHub = "still waiting to acquire lock on ";  // utils/_fixes.py
  constexpr std::string_view kFilelock = " not acquired on ";             // _api.py
  if (const std::size_t at = line.find(kHub); at != line.npos) {
    const std::string_view path = line.substr(at + kHub.size());
    const std::size_t more = path.find(" (");  // "(elapsed: 10.1 seconds)"
    return base::trim(path.substr(0, more));
  }
  const std::size_t at = line.find(kFilelock);
  const std::size_t end = line.find(", waiting ", std::min(at, line.size()));
  const bool lock = end != line.npos && line.substr(0, at).find("Lock ") != line.npos;
  return lock ? std::optional(line.substr(at + kFilelock.size(), end - at - kFilelock.size()))
              : std::nullopt;
}

/// Only waits were told since the first of them; what a traceback prints ends no wait.
ToldLocks locks_of(const model::Log& log) {
  ToldLocks out;
  bool raising = false;
  for (const std::string_view raw : base::split(log.text, '\n')) {
    const std::string_view line = model::read_log_line(raw.substr(0, kLongestLockLine)).text;
    const auto path = lock_in(line);
    if (path && !path->empty()) {
      const std::string name = base::printable(*path);
      ++out.times;
      out.line = base::printable(base::trim(line));
      if (out.paths.size() < kMostLocks &&
          std::find(out.paths.begin(), out.paths.end(), name) == out.paths.end()) {
        out.paths.push_back(name);
      }
    } else if (base::contains(line, "Traceback (most recent call last)")) {
      raising = true;
    } else if (!raising && !base::trim(line).empty()) {
      out = {};
    }
  }
  return out;
}

}  // namespace

std::optional<Finding> waits_for_told_locks(const model::JobModel& job, std::string_view kind) {
  constexpr std::size_t kMostNamedLocks = 4;
  constexpr int kFewestTimes = 2;  // it is only late the first time
  for (const model::Log& log : job.logs) {
    const ToldLocks told = locks_of(log);
    if (told.times < kFewestTimes) {
      continue;
    }
    const bool one = told.paths.size() == 1;
    const std::vector<std::string> named(
        told.paths.begin(), told.paths.begin() + static_cast<std::ptrdiff_t>(
                                                     std::min(told.paths.size(), kMostNamedLocks)));
    Finding finding;
    finding.kind = kind;
    finding.confidence = Confidence::kPossible;
    if (log.rank) {
      finding.waiting.insert(*log.rank);
    }
    finding.summary = fmt::format(
        "{} for {}, which another process holds or an earlier run left behind",
        log.rank ? fmt::format("rank {} waits", *log.rank) : std::string("a process waits"),
        one ? "the lock file " + told.paths.front()
            : fmt::format("{} lock files, {} among them", told.paths.size(), told.paths.front()));
    finding.evidence.push_back(
        {.rank = log.rank, .text = fmt::format("log, {} times: {}", told.times, told.line)});
    finding.fix = fmt::format(
        "Check that no other process is downloading or building (`fuser {}`), then remove {} and "
        "start again.",
        told.paths.front(), fmt::join(named, ", "));
    finding.details["paths"] = told.paths;
    return finding;
  }
  return std::nullopt;
}

}  // namespace ddpdoctor::detectors
