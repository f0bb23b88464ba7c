// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

JobBuilder story(std::int64_t kills) {
  auto told = job().ranks(1).stack(0, kInBatchWait).worker(0, kIdleWorker).worker(0, kIdleWorker);
  for (const pid_t pid : {worker_pid(0, 0), worker_pid(0, 1)}) {
    told.fact("fork", {{"parent_pid", std::int64_t{pid_of(0)}}}, 0, pid);
  }
  return told.fact("memory", {{"cgroup", std::string("/job")}, {"oom_kills", kills}});
}

TEST(CopyOnWriteGrowth, IsNeverMoreThanAResemblance) {
  const auto findings = asked("copy-on-write-growth", story(2).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
}

/// Two workers have copied this much in half a second and still share this much.
model::JobModel measured(double copied, double shared, double room) {
  auto told = job().ranks(1).stack(0, kInBatchWait).worker(0, kIdleWorker).worker(0, kIdleWorker);
  for (const pid_t pid : {worker_pid(0, 0), worker_pid(0, 1)}) {
    told.fact("fork", {{"parent_pid", std::int64_t{pid_of(0)}}}, 0, pid);
    told.fact("worker-memory",
              {{"copied_bytes", copied},
               {"over_seconds", 0.5},
               {"shared_bytes", shared},
               {"room_bytes", room}},
              0, pid);
  }
  return told.build();
}

TEST(CopyOnWriteGrowth, IsLikelyWhereItWasMeasuredAndThereIsNoRoom) {
  const auto findings = asked("copy-on-write-growth", measured(5e6, 4e8, 6e8));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
}

TEST(CopyOnWriteGrowth, IsSilentWhereThereIsRoomOrNobodyCopies) {
  EXPECT_TRUE(asked("copy-on-write-growth", measured(5e6, 4e8, 9e8)).empty());
  EXPECT_TRUE(asked("copy-on-write-growth", measured(1e4, 4e8, 6e8)).empty());
}

TEST(CopyOnWriteGrowth, IsSilentWithEnoughMemory) {
  EXPECT_TRUE(asked("copy-on-write-growth", story(0).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
