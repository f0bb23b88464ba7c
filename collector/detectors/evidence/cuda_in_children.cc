// SPDX-License-Identifier: Apache-2.0
// In a program of its own, the same answer means a broken driver: only the frames of a forked child
// or the DataLoader's report on its worker tell them apart.
#include "collector/detectors/evidence/cuda_in_children.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text.h"
#include "collector/detectors/evidence/known_exceptions.h"
#include "collector/detectors/evidence/tracebacks.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kLongestQuoted = 200;

/// cudaErrorInitializationError of torch, of THC (torch before 1.5) and of CuPy; numba's name.
bool says_not_initialized(std::string_view text) {
  return text.find("CUDA error: initialization error") != text.npos ||
         text.find("cuda runtime error (3) : initialization error") != text.npos ||
         text.find("cudaErrorInitializationError") != text.npos ||
         text.find("CUDA_ERROR_NOT_INITIALIZED") != text.npos;
}

Suspect suspect_with(std::optional<model::Rank> rank, const model::CallSite& place,
                     std::string_view line) {
  Suspect suspect{.rank = rank, .place = place};
  suspect.confidence = Confidence::kLikely;
  suspect.evidence = "log: " + base::elide(base::printable(base::trim(line)), kLongestQuoted);
  return suspect;
}

/// "terminate called after throwing …" and below it "  what():  CUDA error: initialization error".
std::optional<LogLine> terminated_by_cuda(const model::JobModel& job) {
  for (const LogStream& stream : log_streams(job)) {
    for (const LogLine& line : stream) {
      if (base::trim(line.text).starts_with("what():") && says_not_initialized(line.text)) {
        return line;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

FailedChildren cuda_failed_in_children(const graph::Examination& examination) {
  FailedChildren out{.subject = "a child process", .suspects = {}};
  std::vector<Suspect>& all = out.suspects;
  for (const Traceback& one : tracebacks(examination.job)) {
    if (one.of_child && says_not_initialized(one.exception)) {
      all.push_back(suspect_with(one.rank, one.place, one.exception));
      all.back().note = "a child process used CUDA here";
    }
  }
  const auto what = all.empty() ? terminated_by_cuda(examination.job) : std::nullopt;
  if (!what) {
    return out;
  }
  const auto lost = sightings(examination.job, "dataloader-worker-killed");
  for (const Sighting& sighting : lost) {
    const std::size_t at = sighting.line.find("(pid ");
    const bool of_another_rank = sighting.rank && what->rank && sighting.rank != what->rank;
    if (of_another_rank || at == std::string::npos ||
        sighting.line.find("signal: Aborted") == std::string::npos) {
      continue;
    }
    std::string_view pid = std::string_view(sighting.line).substr(at + 5);
    pid = pid.substr(0, pid.find(')') + 1);  // "99)": not the end of a different number
    // The second report of the same worker has the user's line.
    const auto second = std::find_if(lost.begin(), lost.end(), [pid](const Sighting& other) {
      return other.place.known() && other.line.find(fmt::format(" {}", pid)) != std::string::npos;
    });
    const model::CallSite place = second == lost.end() ? sighting.place : second->place;
    all.push_back(suspect_with(sighting.rank, place, sighting.line));
    all.back().note = "a worker of this DataLoader used CUDA";
    out.subject = fmt::format("DataLoader worker {}", pid.substr(0, pid.find(')')));
    all.push_back(suspect_with(sighting.rank, place, what->text));
    break;
  }
  return out;
}

}  // namespace ddpdoctor::detectors
