// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

TEST(OrphanProcess, FindsAWorkerWhoseRankIsGone) {
  const auto findings =
      asked("orphan-process", job()
                                  .ranks(1)
                                  .exited(0, 1)
                                  .process({.role = model::Role::kDataLoaderWorker,
                                            .pid = 777,
                                            .ppid = 1,
                                            .threads = {{.stack = "py:f@/srv/data.py:3"}}})
                                  .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(std::get<std::int64_t>(findings[0].details.at("pid")), 777);
}

TEST(OrphanProcess, IsSilentWhereAProcessWithoutPidMayBeTheFirst) {
  model::JobModel told = job()
                             .ranks(1)
                             .process({.role = model::Role::kDataLoaderWorker,
                                       .pid = 777,
                                       .ppid = 1,
                                       .threads = {{.stack = "py:f@/srv/data.py:3"}}})
                             .build();
  EXPECT_EQ(asked("orphan-process", told).size(), 1u);
  for (model::Observation& observation : told.observations) {
    observation.processes.front().pid = 0;
  }
  EXPECT_TRUE(asked("orphan-process", told).empty());
}

TEST(OrphanProcess, IsSilentOnRanksThatAShellStarted) {
  EXPECT_TRUE(asked("orphan-process",
                    job()
                        .ranks(1)
                        .process({.role = model::Role::kRank, .rank = 0, .pid = 777, .ppid = 1})
                        .build())
                  .empty());
}

TEST(OrphanProcess, IsSilentOnWorkersWithARank) {
  EXPECT_TRUE(asked("orphan-process", job().ranks(1).worker(0, kIdleWorker).build()).empty());
}

TEST(OrphanProcess, KnowsALauncherByItsPid) {
  model::JobModel told =
      job()
          .ranks(1)
          .process({.role = model::Role::kRank, .rank = 0, .pid = 777, .ppid = 1})
          .build();
  told.launcher_pid = 4000;
  EXPECT_EQ(asked("orphan-process", told).size(), 1u);
  told.launcher_pid = 1;  // a container
  EXPECT_TRUE(asked("orphan-process", told).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
