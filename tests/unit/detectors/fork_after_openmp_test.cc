// SPDX-License-Identifier: Apache-2.0
#include "collector/model/questions.h"
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

const std::string kDeadTeam =
    "native:syscall@libc.so.6 | native:@libgomp-a34b3233.so.1 | "
    "native:GOMP_parallel@libgomp-a34b3233.so.1 | "
    "native:at::native::cpublas::gemm@libtorch_cpu.so | py:serve@/srv/train.py:12 | " +
    kForkedChild;

JobBuilder story(const std::string& child_stack) {
  return job()
      .ranks(3)
      .command({"python", "train.py"})
      .stack(kAll, kInBarrier)
      .stack(1,
             "native:wait4@libc.so.6 | "
             "py:BaseProcess.join@/usr/lib/python3.11/multiprocessing/process.py:149 | "
             "py:main@/srv/train.py:22")
      .process({.role = model::Role::kOther,
                .rank = 1,
                .pid = 777,
                .command = {"python", "train.py"},
                .threads = {{.stack = child_stack}}});
}

TEST(ForkAfterOpenmp, BlamesTheLineInTheChildThatEntersTheDeadTeam) {
  const auto findings = asked("fork-after-openmp", story(kDeadTeam).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 2}));
  ASSERT_FALSE(findings[0].locations.empty());
  EXPECT_EQ(findings[0].locations[0].line, 12);
  EXPECT_EQ(std::get<std::int64_t>(findings[0].details.at("pid")), 777);
}

/// The same stack without multiprocessing's frames of a forked child.
std::string hiding_the_fork(std::string stack) {
  const std::string fork = "popen_fork.py";
  return stack.replace(stack.find(fork), fork.size(), "popen_other.py");
}

TEST(ForkAfterOpenmp, TrustsTheStackWhenNothingElseTellsOfTheFork) {
  auto told = story(kDeadTeam).build();
  for (model::Observation& observation : told.observations) {
    observation.processes.back().command.clear();
  }
  EXPECT_EQ(asked("fork-after-openmp", told).size(), 1u);
}

TEST(ForkAfterOpenmp, TrustsTheForkFactWhenTheCommandWasRewritten) {
  auto told = story(hiding_the_fork(kDeadTeam)).build();
  for (model::Observation& observation : told.observations) {
    observation.processes.back().command = {"trainer: worker"};
  }
  EXPECT_TRUE(asked("fork-after-openmp", told).empty());
  told.facts.push_back(
      {.rank = 1, .pid = 777, .kind = "fork", .fields = {{"parent_pid", std::int64_t{1100}}}});
  EXPECT_EQ(asked("fork-after-openmp", told).size(), 1u);
}

TEST(ForkAfterOpenmp, IsSilentOnAChildWithATeamOfItsOwn) {
  auto healthy = story(kDeadTeam).build();
  for (model::Observation& observation : healthy.observations) {
    model::Thread member;
    member.tid = 778;
    member.state = 'S';
    member.frames = {{.function = "gomp_thread_start",
                      .file = {},
                      .module = "libgomp.so.1",
                      .locals = {},
                      .loops = {}}};
    observation.processes.back().threads.push_back(member);
  }
  EXPECT_TRUE(asked("fork-after-openmp", healthy).empty());
}

TEST(ForkAfterOpenmp, IsSilentWhileTheChildComputesInsideTheRegion) {
  EXPECT_TRUE(
      asked("fork-after-openmp",
            story("native:sgemm_kernel@libtorch_cpu.so | native:GOMP_parallel@libgomp.so.1 | "
                  "py:serve@/srv/train.py:12 | " +
                  kForkedChild)
                .build())
          .empty());
}

TEST(ForkAfterOpenmp, IsSilentOnASpawnedChild) {
  auto spawned = story(hiding_the_fork(kDeadTeam)).build();
  for (model::Observation& observation : spawned.observations) {
    observation.processes.back().command = {"python", "-c",
                                            "from multiprocessing.spawn import spawn_main"};
  }
  EXPECT_TRUE(asked("fork-after-openmp", spawned).empty());
}

/// The child as another tool shows it: no command, no parent.
model::JobModel dumped_by(std::string_view tool) {
  auto told = story(hiding_the_fork(kDeadTeam)).build();
  for (model::Observation& observation : told.observations) {
    model::Process& child = observation.processes.back();
    child.command.clear();
    child.ppid = -1;
    for (model::Thread& thread : child.threads) {
      thread.capture = std::string(model::kDumpedFrom) + std::string(tool);
      thread.frames.at(1).function = "gomp_team_barrier_wait_end";
    }
  }
  return told;
}

TEST(ForkAfterOpenmp, ATeamBarrierWithoutATeamIsProofEnoughWhereNativeThreadsAreShown) {
  EXPECT_EQ(asked("fork-after-openmp", dumped_by("gdb")).size(), 1u);
  // This tool does not show such threads.
  EXPECT_TRUE(asked("fork-after-openmp", dumped_by("py-spy")).empty());
}

TEST(ForkAfterOpenmp, IsOnlyPossibleWhenAThreadCouldNotBeRead) {
  auto hidden = story(kDeadTeam).looked_once().build();
  for (model::Observation& observation : hidden.observations) {
    model::Thread unreadable;
    unreadable.tid = 778;
    observation.processes.back().threads.push_back(unreadable);
  }
  const auto findings = asked("fork-after-openmp", hidden);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
}

TEST(ForkAfterOpenmp, DoesNotDependOnTheOrderOfProcesses) {
  const auto told = story(kDeadTeam).build();
  EXPECT_EQ(essence(asked("fork-after-openmp", told)),
            essence(asked("fork-after-openmp", reversed(told))));
}

TEST(ForkAfterOpenmp, KnowsOtherPools) {
  const auto told = [](const std::string& asker) {
    return asked("fork-after-openmp",
                 story("native:futex_wait_cancelable@libc.so.6 | "
                       "native:pthread_cond_wait@libc.so.6 | native:" +
                       asker + " | py:serve@/srv/train.py:12 | " + kForkedChild)
                     .build());
  };
  const auto findings = told("rayon_core::latch::LockLatch::wait_and_reset@tokenizers.so");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("rayon"), std::string::npos) << findings[0].summary;
  EXPECT_TRUE(told("media::Reader::next@libmedia.so").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
