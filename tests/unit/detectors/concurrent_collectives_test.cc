// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(2).stack(kAll, in("all_reduce", "py:main@/srv/train.py:20", "group=None"));
  builder.thread(kAll, {.stack = in("broadcast", "py:save@/srv/train.py:8", "group=None")});
  return builder;
}

TEST(ConcurrentCollectives, NamesRanksWithTwoThreadsInOneGroup) {
  const Findings findings = asked("concurrent-collectives", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 8);
}

TEST(ConcurrentCollectives, SaysThreadsThatHaveNoNumberByName) {
  model::JobModel job = told().build();
  for (model::Process& process : job.observations.back().processes) {
    for (model::Thread& thread : process.threads) {
      thread.tid = -739209519;  // an address, as in a dump of faulthandler
      thread.name = "0x00007f5ae2e266c0";
    }
  }
  const Findings findings = asked("concurrent-collectives", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].summary,
            "two threads of ranks 0 and 1 are in collectives of default_pg at the same time");
  EXPECT_TRUE(findings[0].evidence.at(0).text.starts_with("thread 0x00007f5ae2e266c0 is in "))
      << findings[0].evidence.at(0).text;
}

TEST(ConcurrentCollectives, IsSilentWhenTheThreadHasAGroupOfItsOwn) {
  JobBuilder builder = job();
  builder.ranks(2)
      .group("1", {0, 1}, "saving")
      .stack(kAll, in("all_reduce", "py:main@/srv/train.py:20", "group=None"));
  builder.thread(kAll,
                 {.stack = in("broadcast", "py:save@/srv/train.py:8", "group=<ProcessGroup 1>")});
  EXPECT_TRUE(asked("concurrent-collectives", builder.build()).empty());
}

/// The second thread belongs to a library, and no argument names a group.
JobBuilder library_thread(const tests::Who& who) {
  JobBuilder builder = job();
  builder.ranks(2).stack(kAll, in("barrier", "py:main@/srv/train.py:20"));
  builder.thread(who, {.stack = in("all_gather",
                                   "py:_save_state_dict@/venv/lib/python3.11/site-packages/torch/"
                                   "distributed/checkpoint/state_dict_saver.py:431 | "
                                   "py:_bootstrap@/usr/lib/python3.11/threading.py:1002")});
  return builder;
}

TEST(ConcurrentCollectives, KnowsAThreadOfALibraryWhereEveryRankIsInBothCalls) {
  const Findings findings = asked("concurrent-collectives", library_thread(kAll).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

TEST(ConcurrentCollectives, OfALibrarysThreadAtOneLookIsOnlyPossible) {
  const Findings findings =
      asked("concurrent-collectives", library_thread(kAll).looked_once().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
}

TEST(ConcurrentCollectives, IsSilentWhereOneRankIsInOneOfThemOnly) {
  EXPECT_TRUE(asked("concurrent-collectives", library_thread({0}).build()).empty());
}

TEST(ConcurrentCollectives, IsSilentWhileTheJobMoves) {
  EXPECT_TRUE(asked("concurrent-collectives", moving(told().build())).empty());
}

TEST(ConcurrentCollectives, AccusesNoUnobservedRank) {
  JobBuilder builder = told();
  builder.unobserved(1);
  const Findings findings = asked("concurrent-collectives", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
}

TEST(ConcurrentCollectives, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("concurrent-collectives", told().build())),
            essence(asked("concurrent-collectives", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
