// SPDX-License-Identifier: Apache-2.0
// A rank that polls the progress of one of its own threads.
#include <string>

#include <gtest/gtest.h>

#include "collector/graph/standing.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::graph {
namespace {

/// Rank 0 sleeps in `while CONDITION:`; its other thread sleeps before LINE.
bool works(const std::string& condition, const std::string& line, double seconds = 0.5) {
  const model::WaitsOn timer{.kind = "timer", .target = {}, .detail = {}, .limit = seconds};
  const auto told =
      tests::job()
          .ranks(2)
          .source("/srv/up.py", "def drain(self):\n    while " + condition +
                                    ":\n        time.sleep(5)\n\ndef run(self):\n"
                                    "    while True:\n        time.sleep(1)\n        " +
                                    line + "\n")
          .stack(0, "native:clock_nanosleep | native:time_sleep | py:drain@/srv/up.py:3")
          .waits(0, {.kind = "timer", .target = {}, .detail = {}, .limit = 4})
          .thread(0, {.stack = "native:clock_nanosleep | py:run@/srv/up.py:7", .waits_on = timer})
          .stack(1,
                 "native:c10d::Work::wait | py:barrier@/v/site-packages/torch/distributed/"
                 "distributed_c10d.py:4830 | py:main@/srv/train.py:40")
          .build();
  return standings(told).at(0).on_cpu;
}

TEST(PolledState, ThatAnotherThreadChangesIsWorkedFor) {
  EXPECT_TRUE(works("self.todo", "send(self.todo.popleft())"));
  EXPECT_TRUE(works("not up.done", "self.done = not todo"));
  EXPECT_TRUE(works("left > 0", "left -= 1"));
}

TEST(PolledState, ThatItOnlyReadsOrThatNobodyChangesIsNot) {
  EXPECT_FALSE(works("not self.done", "beat(self.done)"));
  EXPECT_FALSE(works("not self.done", "self.undone = self.done == 3"));
  EXPECT_FALSE(works("not os.path.exists(path)", "beats += 1"));
  EXPECT_FALSE(works("self.todo", "send(self.todo.popleft())", 86400));
}

}  // namespace
}  // namespace ddpdoctor::graph
