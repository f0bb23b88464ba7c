// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

/// py-spy's dump of a server: the main thread and a pool sleep, "reaper" is active with the GIL.
Findings of_server(char of_pool, bool of_main = false) {
  auto told = job()
                  .ranks(1)
                  .stack(0, "py:serve@/srv/server.py:263 | py:<module>@/srv/server.py:300")
                  .state(0, 'S')
                  .thread(0, {.stack = "py:worker@/srv/pool.py:131", .name = "pool"})
                  .thread(0, {.stack = "py:release@/srv/transfer.py:671", .name = "reaper"})
                  .build();
  told.progress = model::Progress::kUnknown;
  for (auto& observation : told.observations) {
    std::erase_if(observation.processes, [](const auto& one) { return one.threads.size() != 3; });
    auto& threads = observation.processes.front().threads;
    for (model::Thread& thread : threads) {
      thread.capture = "from py-spy";
    }
    threads[1].state = of_pool;
    threads[of_main ? 0 : 2].gil = true;
    threads[of_main ? 0 : 2].state = 'R';
    threads[of_main ? 2 : 0].state = 'S';
  }
  told.observations.resize(1);
  return asked("undetermined", told);
}

TEST(ToldGilHolder, IsTheThreadToName) {
  const auto findings = of_server('S');
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].summary.starts_with(
      "thread reaper of rank 0 has the GIL in release (transfer.py:671)"))
      << findings[0].summary;
  EXPECT_TRUE(findings[0].culprits.empty());
}

TEST(ToldGilHolder, IsNotNamedWhereOthersWorkOrWhereItIsTheMainThread) {
  const std::array<Findings, 2> all = {of_server('R'), of_server('S', true)};
  for (const Findings& findings : all) {
    for (const Finding& finding : findings) {
      EXPECT_EQ(finding.summary.find("has the GIL"), std::string::npos) << finding.summary;
    }
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
