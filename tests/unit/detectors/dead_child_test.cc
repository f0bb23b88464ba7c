// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "dead-child";
constexpr pid_t kChild = 701;

const std::string kInGet =
    "native:read@libc.so.6 | "
    "py:Connection._recv@/usr/lib/python3.11/multiprocessing/connection.py:395 | "
    "py:Queue.get@/usr/lib/python3.11/multiprocessing/queues.py:103 | py:batches@/srv/feed.py:17 | "
    "py:main@/srv/train.py:9";

JobBuilder& reads_pipe(JobBuilder& builder, model::Rank rank, std::vector<std::string> enders) {
  return builder.fact("blocked-on",
                      {{"tid", std::int64_t{pid_of(rank)}},
                       {"object", std::string("pipe:[7]")},
                       {"object_kind", std::string("pipe")},
                       {"operation", std::string("read")},
                       {"enders", std::move(enders)},
                       {"open", false},
                       {"ready", false}},
                      rank, pid_of(rank));
}

/// Rank 1 reads from a queue; its child has ended with `exit`.
JobBuilder story(model::Exit exit, std::vector<std::string> enders = {std::to_string(pid_of(1))}) {
  JobBuilder builder = job().ranks(2).stack(kAll, kInBarrier).stack(1, kInGet);
  builder.process({.role = model::Role::kDataLoaderWorker,
                   .rank = 1,
                   .pid = kChild,
                   .state = 'Z',
                   .exit = exit});
  return reads_pipe(builder, 1, std::move(enders));
}

TEST(DeadChild, NamesTheRankThatWaitsAndTheChildThatFailed) {
  const auto findings = asked(kKind, story({.status = 1, .signal = {}}).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 17);
  EXPECT_NE(findings[0].summary.find("process 701, which has exited with status 1"),
            std::string::npos)
      << findings[0].summary;
}

TEST(DeadChild, TellsTheExceptionThatTheChildPrinted) {
  const auto findings = asked(
      kKind, story({.status = 1, .signal = {}})
                 .fact("child-output",
                       {{"text", std::string("Traceback (most recent call last):\n"
                                             "  File \"/srv/feed.py\", line 6, in produce\n"
                                             "    raise KeyError(name)\nKeyError: 'tokens'\n")}},
                       1, kChild)
                 .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("(KeyError)"), std::string::npos) << findings[0].summary;
  EXPECT_EQ(findings[0].locations.at(1).line, 6);
}

TEST(DeadChild, IsLessSureOfOneThatEndedWell) {
  const auto findings = asked(kKind, story({.status = 0, .signal = {}}).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].fix.find("end mark"), std::string::npos);
}

TEST(DeadChild, IsSilentWhileAnotherProcessMayWrite) {
  JobBuilder builder = story({.status = 1, .signal = {}}, {std::to_string(pid_of(1)), "702"});
  builder.process({.rank = 1,
                   .pid = 702,
                   .state = 'R',
                   .threads = {{.stack = "py:produce@/srv/feed.py:5", .state = 'R'}}});
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
}

TEST(DeadChild, IsSilentWithoutADeadChildOrWhileTheRankWaitsForOthers) {
  JobBuilder alone = job().ranks(2).stack(kAll, kInBarrier).stack(1, kInGet);
  EXPECT_TRUE(asked(kKind, reads_pipe(alone, 1, {std::to_string(pid_of(1))}).build()).empty());
  JobBuilder waits = story({.status = 1, .signal = {}}).stack(1, kInBarrier);
  EXPECT_TRUE(asked(kKind, waits.build()).empty());
}

/// Each rank in `failed` has a child that failed; rank 1 polls for a file.
JobBuilder polling(const model::RankSet& failed) {
  JobBuilder builder = job().ranks(2).stack(kAll, kInBarrier);
  builder.source("/srv/prep.py",
                 "def wait(path):\n    while not os.path.exists(path):\n        time.sleep(1)\n");
  builder.stack(1, "native:clock_nanosleep@libc.so.6 | py:wait@/srv/prep.py:3");
  for (const model::Rank rank : failed) {
    builder.process({.rank = rank,
                     .pid = kChild + rank,
                     .state = 'Z',
                     .exit = model::Exit{.status = 3, .signal = {}}});
  }
  return builder;
}

TEST(DeadChild, KnowsAPollForWhatAChildShouldHaveMade) {
  const auto findings = asked(kKind, polling({1}).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_TRUE(asked(kKind, polling({0, 1}).build()).empty());  // rank 0 continued without its child
  EXPECT_TRUE(asked(kKind, polling({0}).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
