// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "nested-pool";

const std::string kInResult =
    "native:futex_wait@libc.so.6 | py:Condition.wait@/usr/lib/python3.11/threading.py:327 | "
    "py:Future.result@/usr/lib/python3.11/concurrent/futures/_base.py:451 | ";
const std::string kWorker =
    "py:_WorkItem.run@/usr/lib/python3.11/concurrent/futures/thread.py:58 | "
    "py:_worker@/usr/lib/python3.11/concurrent/futures/thread.py:83";

JobBuilder story(const std::string& second, char state = 'S') {
  JobBuilder builder = job().ranks(2).stack(kAll, kInBarrier);
  builder.stack(1, kInResult + "py:parse_all@/srv/work.py:11 | py:main@/srv/train.py:8");
  builder.thread(1, {.stack = kInResult + "py:parse@/srv/work.py:7 | " + kWorker});
  builder.thread(1, {.stack = second, .state = state});
  for (const pid_t tid : {pid_of(1), tid_of(1, 1), tid_of(1, 2)}) {
    builder.fact("blocked-on",
                 {{"tid", std::int64_t{tid}},
                  {"object", "lock:" + std::to_string(tid)},
                  {"object_kind", std::string("lock")},
                  {"operation", std::string("acquire")},
                  {"enders", std::vector<std::string>{std::to_string(pid_of(1))}},
                  {"open", false},
                  {"ready", false}},
                 1, pid_of(1));
  }
  return builder;
}

TEST(NestedPool, NamesTheTaskThatWaitsForATaskOfItsOwnPool) {
  const auto findings =
      asked(kKind, story(kInResult + "py:parse@/srv/work.py:7 | " + kWorker).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
  EXPECT_EQ(findings[0].locations.at(1).line, 11);
}

TEST(NestedPool, IsSilentWhileAWorkerComputesOrIsFree) {
  EXPECT_TRUE(asked(kKind, story("py:leaf@/srv/work.py:4 | " + kWorker, 'R').build()).empty());
  EXPECT_TRUE(
      asked(kKind, story("py:_worker@/usr/lib/python3.11/concurrent/futures/thread.py:81").build())
          .empty());
}

TEST(NestedPool, IsSilentWhileAnotherThreadMaySetTheResult) {
  EXPECT_TRUE(
      asked(kKind, story("py:serve@/srv/loop.py:4 | py:_run@/srv/loop.py:9", 'R').build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
