// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/strays.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "collector/model/questions.h"
#include "tests/support/child_process.h"

namespace ddpdoctor::monitor {
namespace {

/// What is told of `pid` after looks at 10 and 13 seconds with `between` in the middle.
template <typename Between>
std::optional<model::Fact> told(pid_t command, pid_t pid, Between between) {
  Strays strays(::getpid(), command);
  strays.look(10);
  between();
  strays.look(13);
  model::JobModel job;
  strays.add_to(job);
  for (const model::Fact* fact : model::facts(job, "stray")) {
    if (fact->pid == pid) {
      return *fact;
    }
  }
  return std::nullopt;
}

TEST(Strays, AreIdleAsLongAsNothingOfThemRuns) {
  test::ChildProcess child({"env", "RANK=3", "sh", "-c", "echo up; exec cat"});
  ASSERT_EQ(child.line(), "up");
  Strays strays(::getpid(), 0);
  double idle = 0;
  for (int second = 0; second < 1000 && idle < 3; ++second) {  // until it has come to its read
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
  const auto fact = told(0, child.pid(), [&child] {
    ASSERT_EQ(child.line(), "on");
    ASSERT_EQ(child.line(), "on");
  });
  ASSERT_TRUE(fact.has_value());
  EXPECT_EQ(fact->number("idle_seconds"), 0);
}

TEST(Strays, AreNotTheCommandItself) {
  test::ChildProcess child({"sh", "-c", "echo up; exec cat"});
  ASSERT_EQ(child.line(), "up");
  EXPECT_FALSE(told(child.pid(), child.pid(), [] {}).has_value());
}

}  // namespace
}  // namespace ddpdoctor::monitor
