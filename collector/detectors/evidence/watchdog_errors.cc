// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/watchdog_errors.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/advice_on_end.h"
#include "collector/detectors/evidence/nccl_words.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/detectors/evidence/wording.h"
#include "collector/detectors/evidence/written_after.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestError = 80;

/// "an illegal memory access was encountered"; empty for a line that tells no CUDA error.
std::string_view error_in(std::string_view line) {
  constexpr std::string_view kTerminated = "watchdog thread terminated with exception: ";
  constexpr std::string_view kError = "CUDA error: ";
  const std::size_t at = line.find(kTerminated);
  const std::string_view what =
      at == line.npos ? std::string_view() : line.substr(at + kTerminated.size());
  const std::size_t error = what.substr(0, kLongestError).find(kError);
  return error == what.npos ? std::string_view() : base::trim(what.substr(error + kError.size()));
}

/// "[Rank 1]", "Rank 1] " of the message, for lines without a prefix.
std::optional<model::Rank> rank_in(std::string_view line) {
  const std::size_t at = line.find("Rank ");
  const auto number = at == line.npos ? std::nullopt : leading_number(line.substr(at + 5));
  return number ? std::optional(static_cast<model::Rank>(*number)) : std::nullopt;
}

}  // namespace

std::optional<model::Rank> rank_in_watchdogs_line(std::string_view line) {
  return error_in(line).empty() ? std::nullopt : rank_in(line);
}

Findings told_by_watchdogs(const model::JobModel& job, std::string_view kind) {
  std::map<std::string, Finding> by_error;
  if (job.logs.empty() || output_goes_on(job)) {
    return {};
  }
  for (const LogStream& stream : log_streams(job)) {
    for (const LogLine& line : stream) {
      const std::string error = base::elide(base::printable(error_in(line.text)), kLongestError);
      const auto rank = line.rank ? line.rank : rank_in(line.text);
      if (error.empty() || (rank && by_error[error].culprits.contains(*rank))) {
        continue;
      }
      Finding& finding = by_error[error];
      finding.kind = kind;
      finding.confidence = Confidence::kLikely;
      if (rank) {
        finding.culprits.insert(*rank);
      }
      finding.evidence.push_back(
          {.rank = rank,
           .text = "log: " + base::elide(base::printable(base::trim(line.text)), 240)});
      const std::string_view fix = advice_by_text(error);
      finding.fix = fix.empty() ? "Run again with CUDA_LAUNCH_BLOCKING=1: the traceback then shows "
                                  "the call that failed."
                                : std::string(fix);
    }
  }
  Findings out;
  for (auto& [error, finding] : by_error) {
    finding.summary = fmt::format(
        "{} failed on the GPU: the NCCL watchdog reports `CUDA error: {}`",
        finding.culprits.empty() ? std::string("a rank") : said(finding.culprits), error);
    out.push_back(std::move(finding));
  }
  return out;
}

bool is_nccl_after_timeout(const model::JobModel& job, const Traceback& traceback) {
  const bool of_system = base::contains(traceback.exception, "unhandled system error") ||
                         base::contains(traceback.exception, "ncclSystemError");
  const std::string_view log = job.logs.at(traceback.log).text;
  const std::size_t timeout = log.find(kWatchdogTimeout);
  if (!of_system || timeout == log.npos) {
    return false;
  }
  const auto above = static_cast<std::size_t>(
      std::count(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(timeout), '\n'));
  return above < traceback.number;
}

}  // namespace ddpdoctor::detectors
