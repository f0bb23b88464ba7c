// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/forecast.h"

#include <algorithm>
#include <utility>

#include "collector/model/kept_segments.h"
#include "collector/model/questions.h"
#include "collector/monitor/observe.h"

namespace ddpdoctor::monitor {

namespace {

using Seconds = std::chrono::duration<double>;

// A job of one hour gets eleven snapshots, a job of one day about 150: for four ranks about five
// seconds of one processor (docs/performance.md).
constexpr Seconds kFirst{3};
constexpr Seconds kLongest{600};
constexpr double kBetween = 0.05;  // seconds

bool knows_a_length(const model::JobModel& job) {
  const model::Observation* now = model::latest(job);
  return now != nullptr &&
         std::any_of(now->processes.begin(), now->processes.end(), [](const auto& process) {
           const model::Thread* thread =
               process.rank && !process.threads.empty() ? model::main_thread(process) : nullptr;
           return thread != nullptr &&
                  std::any_of(thread->frames.begin(), thread->frames.end(), [](const auto& frame) {
                    return std::any_of(frame.loops.begin(), frame.loops.end(),
                                       [](const auto& loop) { return loop.total().has_value(); });
                  });
         });
}

}  // namespace

bool Forecast::is_due(std::uint64_t collectives, Clock::time_point now) {
  if (over_ || collectives == 0) {
    return false;
  }
  const auto after = [&](Seconds distance) {
    distance_ = distance;
    next_ = now + std::chrono::duration_cast<Clock::duration>(distance);
  };
  if (!next_) {
    after(kFirst);
    return false;
  }
  // A job without progress is examined for other reasons.
  if (now < *next_ || collectives == seen_) {
    return false;
  }
  seen_ = collectives;
  after(std::min(distance_ * 2, kLongest));
  return true;
}

std::optional<model::JobModel> Forecast::look(std::uint64_t collectives, Clock::time_point now) {
  if (!is_due(collectives, now)) {
    return std::nullopt;
  }
  // Twice, because a loop length seen in a single snapshot may be that of a moment between two
  // statements.
  auto job = observe(
      job_,
      {.allow_stop = false, .native = false, .glance = true, .samples = 2, .interval = kBetween});
  if (!job) {
    return std::nullopt;
  }
  const std::vector<model::Fact> before = std::exchange(before_, job->facts);
  model::add_growth(before, job->facts);
  if (!knows_a_length(*job) && model::facts(*job, "shm-kept").empty()) {
    return std::nullopt;
  }
  return std::move(*job);
}

}  // namespace ddpdoctor::monitor
