// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

const std::string kLib = "/usr/lib/python3.12/";
const std::string kJoins = "py:join@" + kLib + "threading.py:1149 | py:_finalize_join@" + kLib +
                           "multiprocessing/queues.py:216 | py:join_thread@" + kLib +
                           "multiprocessing/queues.py:149 | py:_join_executor_internals@" + kLib +
                           "concurrent/futures/process.py:566 | py:run@" + kLib +
                           "concurrent/futures/process.py:380";

Findings with_feeder(const std::string& innermost) {
  return asked(
      "lock-deadlock",
      job()
          .ranks(1)
          .stack(0, "py:join@" + kLib + "threading.py:1149 | py:shutdown@" + kLib +
                        "concurrent/futures/process.py:859 | py:convert@/srv/convert.py:18")
          .thread(0, {.stack = kJoins})
          .thread(0, {.stack = innermost + "py:_feed@" + kLib + "multiprocessing/queues.py:290"})
          .build());
}

TEST(LibraryDeadlocks, TheFeederWantsTheLockOfTheManagerThatJoinsIt) {
  const std::string reports =
      "py:_on_queue_feeder_error@" + kLib + "concurrent/futures/process.py:182 | ";
  const auto findings = with_feeder(reports);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{0});
  EXPECT_EQ(findings[0].locations.at(0).line, 18);
  EXPECT_NE(findings[0].fix.find("3.13.1"), std::string::npos);
  // It has the lock, and writes.
  EXPECT_TRUE(with_feeder("py:_send@" + kLib + "multiprocessing/connection.py:384 | py:wakeup@" +
                          kLib + "concurrent/futures/process.py:88 | " + reports)
                  .empty());
  EXPECT_TRUE(with_feeder("").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
