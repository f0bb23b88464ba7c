// SPDX-License-Identifier: Apache-2.0
#include "viewer/clock.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <fmt/format.h>

#include "collector/model/questions.h"

namespace ddpdoctor::viewer {

namespace {

constexpr double kYear9999 = 253'402'300'799.0;
// Earlier times are from clocks that start with the machine, or from tests.
constexpr double kYear2001 = 1'000'000'000.0;
// A job without progress for more than thirty years has a broken clock.
constexpr double kLongestStillness = 1e9;

}  // namespace

std::string utc(double seconds) {
  const std::chrono::sys_seconds second{std::chrono::seconds(
      static_cast<std::int64_t>(seconds >= 0 && seconds < kYear9999 ? seconds : 0))};
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(second - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

std::optional<std::string> observed_at(const model::JobModel& job) {
  const model::Observation* now = model::latest(job);
  if (now == nullptr || !(now->time >= kYear2001 && now->time < kYear9999)) {
    return std::nullopt;
  }
  return utc(now->time) + "Z";
}

double newest_moment(const model::JobModel& job) {
  double newest = 0;
  for (const model::CollectiveCall& call : job.collectives) {
    newest = std::max({newest, call.time.value_or(0), call.end_time.value_or(0)});
  }
  const double since = job.seconds_without_progress.value_or(0);
  return newest + (since > 0 && since < kLongestStillness ? since : 0);
}

}  // namespace ddpdoctor::viewer
