// SPDX-License-Identifier: Apache-2.0
// rank-raised: an asyncio task that failed unnoticed.
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "rank-raised";

/// Rank 1 waits in asyncio's event loop, and one of its tasks has failed.
JobBuilder in_event_loop() {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .stack(1,
             "native:epoll_wait@libc.so.6 | "
             "py:EpollSelector.select@/usr/lib/python3.11/selectors.py:468 | "
             "py:BaseEventLoop._run_once@/usr/lib/python3.11/asyncio/base_events.py:1884 | "
             "py:BaseEventLoop.run_until_complete@/usr/lib/python3.11/asyncio/base_events.py:640 | "
             "py:Queue.get@/usr/lib/python3.11/asyncio/queues.py:158 | "
             "py:batches@/srv/train.py:28 | py:main@/srv/train.py:40")
      .fact("exception",
            {{"exception", std::string("KeyError: item71")},
             {"printed", false},
             {"lost_in_task", true},
             {"file", std::string("/srv/train.py")},
             {"line", std::int64_t{17}},
             {"function", std::string("price")}},
            1, pid_of(1));
}

TEST(LostTask, ATaskThatFailedUnseenIsNamedWhenItsLoopHasNothingToDo) {
  const auto findings = asked(kKind, in_event_loop().build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 17);
  EXPECT_NE(findings[0].fix.find("await"), std::string::npos);
  EXPECT_TRUE(asked("missing-rank", in_event_loop().build()).empty());
}

TEST(LostTask, ATaskThatFailedIsNoCauseWhileTheRankIsInACall) {
  EXPECT_TRUE(asked(kKind, in_event_loop().stack(1, kInBarrier).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
