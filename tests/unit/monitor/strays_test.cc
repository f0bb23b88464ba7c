// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/strays.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/child_process.h"

namespace ddpdoctor::monitor {
namespace {

TEST(Strays, AreIdleAsLongAsNothingOfThemRuns) {
  test::ChildProcess child({"env", "RANK=3", "sh", "-c", "echo up; exec cat"});
  ASSERT_EQ(child.line(), "up");
  Strays strays(::getpid(), 0);
  double idle = 0;
  for (int second = 0; second < 1000 && idle < 3; ++second) {  // until it is in its read
    strays.look(second);
    ::usleep(10'000);
    model::JobModel job;
    strays.add_to(job);
    ASSERT_EQ(job.facts.size(), 1U);
    EXPECT_EQ(job.facts[0].pid, child.pid());
    EXPECT_EQ(job.facts[0].rank, 3);
    EXPECT_GT(job.facts[0].number("start_time").value_or(0), 1e9);
    idle = job.facts[0].number("idle_seconds").value_or(0);
  }
  EXPECT_GE(idle, 3);
}

TEST(Strays, AreNotIdleWhenTheyRanBetweenTheLooks) {
  test::ChildProcess child({"python3", "-uc",
                            "import select, sys\nprint('up')\n"
                            "while not select.select([sys.stdin], [], [], 0.001)[0]:\n"
                            "    print('on')\n"});
  ASSERT_EQ(child.line(), "up");
  Strays strays(::getpid(), 0);
  strays.look(0);
  double second = 0;
  double idle = 0;
  do {  // until it has run between two snapshots
    ::usleep(10'000);
    strays.look(++second);
    model::JobModel job;
    strays.add_to(job);
    ASSERT_EQ(job.facts.size(), 1U);
    idle = job.facts[0].number("idle_seconds").value_or(second);
  } while (idle == second && second < 1000);
  EXPECT_LT(idle, second);
}

TEST(Strays, AreNotTheCommandItself) {
  test::ChildProcess child({"sh", "-c", "echo up; exec cat"});
  ASSERT_EQ(child.line(), "up");
  Strays strays(::getpid(), child.pid());
  strays.look(0);
  model::JobModel job;
  strays.add_to(job);
  EXPECT_TRUE(job.facts.empty());
}

}  // namespace
}  // namespace ddpdoctor::monitor
