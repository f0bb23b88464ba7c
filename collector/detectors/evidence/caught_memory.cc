// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/caught_memory.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/agreement.h"
#include "collector/detectors/evidence/told_timeouts.h"
#include "collector/detectors/evidence/traceback_lines.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestQuote = 200;
constexpr std::size_t kMostCaught = 64;

/// fairseq's collective of pickled objects: a rank in a different call filled the buffer.
bool says_out_of_step(std::string_view exception) {
  return exception.find("Unable to unpickle data from other workers") != exception.npos;
}

/// The others are out of step with a rank: they timed out, or received what they did not expect.
bool out_of_step(const graph::Examination& examination) {
  const model::JobModel& job = examination.job;
  const bool waited =
      !told_timeouts(job).ranks.empty() ||
      std::any_of(job.logs.begin(), job.logs.end(), [](const model::Log& log) {
        return log.text.find("collective operation timeout: Work") != std::string::npos;
      });
  const auto all = tracebacks(job);
  return waited || std::any_of(all.begin(), all.end(), [](const Traceback& one) {
           return says_out_of_step(one.exception);
         });
}

/// The rank worked on for more than a few lines: it was in step with the others again. Tables of
/// torch.cuda.memory_summary() and reports of trouble do not show that.
bool worked_on(const LogStream& stream, std::size_t index) {
  constexpr int kFewLines = 3;
  int lines = 0;
  for (std::size_t i = index + 1; i < stream.size() && lines <= kFewLines; ++i) {
    const std::string_view text = base::trim(stream[i].text);
    if (text.starts_with("Traceback (most recent call last)") ||
        text.find("Watchdog caught") != text.npos) {
      break;
    }
    lines += text.empty() || text.starts_with('|') || model::tells_trouble(text) ? 0 : 1;
  }
  return lines > kFewLines;
}

/// Torch's message behind the words of a logger. A traceback's last line begins with the class.
bool quotes_memory_error(std::string_view line) {
  const std::size_t at = line.find("CUDA out of memory. Tried to allocate");
  return at != line.npos && at > 0 && end_like(base::trim(line)) != EndLike::kYes &&
         !line.substr(0, at).ends_with("Error: ");
}

}  // namespace

std::string gpu_of_message(std::string_view line) {
  // "(GPU 0; 7.93 GiB total capacity", since torch 2.1 ". GPU 0 has a total capacity of".
  for (const std::string_view word : {"(GPU ", ". GPU "}) {
    const std::size_t at = line.find(word);
    const auto number =
        at == line.npos ? std::nullopt : leading_number(line.substr(at + word.size()));
    if (number) {
      return fmt::format("GPU {}", *number);
    }
  }
  return {};
}

std::vector<Suspect> caught_out_of_memory(const graph::Examination& examination) {
  std::vector<Suspect> out;
  if (!out_of_step(examination)) {
    return out;
  }
  for (const LogStream& stream : log_streams(examination.job)) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const LogLine& line = stream[i];
      if (!quotes_memory_error(line.text) || worked_on(stream, i) || out.size() >= kMostCaught) {
        continue;
      }
      Suspect suspect{.rank = line.rank};
      // One that timed out like the others may be in step with them.
      const bool waits = line.rank && waiting_ranks(examination).contains(*line.rank);
      suspect.confidence = waits ? Confidence::kPossible : Confidence::kLikely;
      suspect.deed = kCaughtMemory;
      suspect.evidence =
          "log: " + base::elide(base::printable(base::trim(line.text)), kLongestQuote);
      out.push_back(std::move(suspect));
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors
