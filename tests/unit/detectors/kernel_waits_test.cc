// SPDX-License-Identifier: Apache-2.0
// Processes that sleep in the kernel inside a file system or a driver.
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;
using Words = std::vector<std::string>;

model::JobModel of_process(const Words& functions, const Words& modules, int times = 1) {
  JobBuilder story = job();
  for (int i = 0; i < times; ++i) {
    story.fact("kernel-stack", {{"functions", functions}, {"modules", modules}});
  }
  model::JobModel built = story.build();
  for (model::Fact& fact : built.facts) {
    fact.pid = 4711;
  }
  return built;
}

const Words kInNfs = {"rpc_wait_bit_killable", "nfs4_do_open", "path_openat"};
const Words kOfNfs = {"sunrpc", "nfsv4", ""};

TEST(KernelWaits, AFileSystemIsAnIoStall) {
  const auto findings = asked("io-stall", of_process(kInNfs, kOfNfs));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_NE(findings[0].summary.find("process 4711"), std::string::npos);
  EXPECT_NE(findings[0].summary.find("nfs4_do_open"), std::string::npos);
  ASSERT_EQ(findings[0].locations.size(), 1U);
  EXPECT_EQ(findings[0].locations[0].function, "nfs4_do_open");
}

TEST(KernelWaits, TheSameStackTwiceIsLikely) {
  const auto findings = asked("io-stall", of_process(kInNfs, kOfNfs, 2));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(KernelWaits, ADriverIsAFaultOfItsDevice) {
  EXPECT_EQ(asked("gpu-fault",
                  of_process({"os_acquire_rwlock_write", "nvidia_ioctl"}, {"nvidia", "nvidia"}))
                .size(),
            1U);
  EXPECT_EQ(asked("fabric-fault",
                  of_process({"wait_for_completion_timeout", "mlx5_cmd_exec"}, {"", "mlx5_core"}))
                .size(),
            1U);
}

TEST(KernelWaits, ServersAndThreadsOfTheKernelAlwaysSleep) {
  EXPECT_TRUE(
      asked("fabric-fault", of_process({"ib_uverbs_event_read", "vfs_read"}, {"ib_uverbs", ""}, 2))
          .empty());
  EXPECT_TRUE(asked("io-stall",
                    of_process({"kjournald2", "kthread", "ret_from_fork_asm"}, {"jbd2", "", ""}, 2))
                  .empty());
}

TEST(KernelWaits, OrdinarySleepIsNone) {
  for (const std::string function : {"futex_wait_queue", "pipe_read", "do_wait", "do_sys_poll"}) {
    const auto job = of_process({function, "do_syscall_64"}, {"", ""}, 2);
    for (const char* kind : {"io-stall", "gpu-fault", "fabric-fault"}) {
      EXPECT_TRUE(asked(kind, job).empty()) << function;
    }
  }
}

TEST(KernelWaits, StateDOfATableIsAPossibleStallWhileRanksWait) {
  const auto of = [](const std::string& stack) {
    return asked("io-stall", job()
                                 .ranks(1)
                                 .stack(0, stack)
                                 .progress(model::Progress::kUnknown)
                                 .fact("listed-sleeper", {{"others", std::int64_t{7}}})
                                 .build());
  };
  const auto findings = of(kInBarrier);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  EXPECT_TRUE(of("py:compute@/srv/train.py:3").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
