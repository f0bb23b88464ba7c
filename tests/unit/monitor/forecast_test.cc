// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/forecast.h"

#include <gtest/gtest.h>

namespace ddpdoctor::monitor {
namespace {

/// Seconds at which a job that starts a collective every second is checked.
std::vector<int> glances(Forecast& forecast, int seconds) {
  std::vector<int> out;
  const Forecast::Clock::time_point start;
  for (int i = 0; i < seconds; ++i) {
    if (forecast.is_due(static_cast<std::uint64_t>(i), start + std::chrono::seconds(i))) {
      out.push_back(i);
    }
  }
  return out;
}

TEST(Forecast, GlancesAtDoubledDistances) {
  Forecast forecast(1);
  EXPECT_EQ(glances(forecast, 100), (std::vector<int>{4, 10, 22, 46, 94}));
}

TEST(Forecast, NeverBecomesAHabit) {
  Forecast forecast(1);
  EXPECT_LE(glances(forecast, 3600).size(), 14U);
}

TEST(Forecast, LeavesAJobAloneThatStandsStillOrWasWarned) {
  Forecast forecast(1);
  const Forecast::Clock::time_point start;
  EXPECT_FALSE(forecast.is_due(0, start));
  EXPECT_FALSE(forecast.is_due(7, start));
  EXPECT_TRUE(forecast.is_due(7, start + std::chrono::seconds(5)));
  EXPECT_FALSE(forecast.is_due(7, start + std::chrono::seconds(500)));
  EXPECT_TRUE(forecast.is_due(8, start + std::chrono::seconds(500)));
  forecast.stop();
  EXPECT_FALSE(forecast.is_due(9, start + std::chrono::seconds(5000)));
}

}  // namespace
}  // namespace ddpdoctor::monitor
