// SPDX-License-Identifier: Apache-2.0
// A handler of a signal puts into the queue whose lock the interrupted put() holds.
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

/// A process whose main thread ends so; `between`: frames from the handler to the first put().
Findings told(std::string_view kind, const std::string& inner, const std::string& between) {
  return asked(kind, job()
                         .ranks(1)
                         .stack(0, inner +
                                       "py:put@/usr/lib/python3.6/queue.py:126 | "
                                       "py:put_nowait@/usr/lib/python3.6/queue.py:184 | "
                                       "py:emit@/srv/own_log.py:40 | " +
                                       between +
                                       "py:put@/usr/lib/python3.6/queue.py:145 | "
                                       "py:put_nowait@/usr/lib/python3.6/queue.py:184 | "
                                       "py:emit@/srv/own_log.py:40 | py:main@/srv/train.py:9")
                         .build());
}

const std::string kEnters = "py:__enter__@/usr/lib/python3.6/threading.py:240 | ";
const std::string kHandler =
    "py:on_child@/srv/train.py:3 | py:notify@/usr/lib/python3.6/threading.py:343 | ";

TEST(ReenteredQueue, IsALockThatItsOwnThreadHolds) {
  const Findings findings = told("lock-deadlock", kEnters, kHandler);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("for mutex, held by the put() that it interrupted"),
            std::string::npos)
      << findings[0].summary;
}

TEST(ReenteredQueue, IsNotSaidOfAPutThatWaitsForRoom) {
  EXPECT_TRUE(
      told("lock-deadlock", "py:wait@/usr/lib/python3.6/threading.py:295 | ", kHandler).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
