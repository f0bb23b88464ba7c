// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "store-wait";

const std::string kInGet =
    "native:recv@libc.so.6 | native:c10d::TCPStore::doGet@libtorch_cpu.so | "
    "py:fetch_plan@/srv/train.py:4 | py:main@/srv/train.py:20";

TEST(StoreWait, BlamesTheLineWhenEveryoneWaits) {
  const auto findings = asked(kKind, job().ranks(2).stack(kAll, kInGet).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
}

TEST(StoreWait, IsSilentWhenTheOneWhoSetsItMayBeGone) {
  EXPECT_TRUE(asked(kKind, job().ranks(3).stack(kAll, kInGet).killed(1, 9).build()).empty());
  EXPECT_TRUE(asked(kKind, job().ranks(3).stack(kAll, kInGet).unobserved(1).build()).empty());
}

TEST(StoreWait, OnlySuspectsRanksThatAllAskItAgainAndAgain) {
  const auto told = [](const std::string& asks, const std::string& other) {
    JobBuilder builder = job();
    builder.ranks(3)
        .source("/srv/gate.py",
                "def arrive(self):\n    while here != self.n:\n        "
                "time.sleep(0.4)\n        here = " +
                    asks + "\n    return here\n")
        .stack(kAll, "native:clock_nanosleep | native:time_sleep | py:arrive@/srv/gate.py:3")
        .waits(kAll, {.kind = "timer", .target = {}, .detail = {}, .limit = 0.3});
    if (!other.empty()) {
      builder.stack(1, other);
    }
    return asked(kKind, builder.build());
  };
  const auto findings = told("self.store.add('gate', 0)", "");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0, 1, 2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 2);
  EXPECT_EQ(findings[0].locations.at(1).line, 4);
  EXPECT_EQ(told("self.meeting.add('gate', 0)", "").size(), 1U);  // whatever the store's name is
  EXPECT_EQ(told("kv.compare_set('gate', '', '1')", "").size(), 1U);
  EXPECT_TRUE(told("self.count()", "").empty());
  EXPECT_TRUE(told("seen.add('gate')", "").empty());  // the method of a set
  EXPECT_TRUE(told("self.store.add('gate', 0)", kInBarrier).empty());
}

TEST(StoreWait, LeavesAWaitForARankAtWorkToLongPhase) {
  JobBuilder builder = job();
  builder.ranks(3).stack(kAll, kInGet).stack(0, kInBarrier);
  EXPECT_EQ(asked(kKind, builder.build()).size(), 1U) << "it waits, too";
  builder.stack(0, "native:clock_nanosleep | py:rewrite@/srv/train.py:9 | py:main@/srv/train.py:18")
      .computing(0);
  EXPECT_TRUE(asked(kKind, builder.build()).empty());
  const auto phase = asked("long-phase", builder.build());
  ASSERT_EQ(phase.size(), 1U);
  EXPECT_EQ(phase[0].culprits, model::RankSet({0}));
  EXPECT_NE(phase[0].summary.find("in the store"), std::string::npos) << phase[0].summary;
}

TEST(StoreWait, IsSilentInAMovingJob) {
  EXPECT_TRUE(
      asked(kKind, job().ranks(2).stack(kAll, kInGet).progress(model::Progress::kMoving).build())
          .empty());
}

TEST(StoreWait, IsSilentWithoutAStore) {
  EXPECT_TRUE(asked(kKind, job().ranks(2).stack(kAll, kInBarrier).build()).empty());
}

TEST(StoreWait, ReadsTheKeyFromTheLine) {
  const auto told =
      job()
          .ranks(2)
          .source("/srv/train.py", "def plan(store):\n    return store.get('plan/0')\n")
          .stack(kAll, "native:c10d::TCPStore::get@libtorch_cpu.so | py:plan@/srv/train.py:2")
          .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(std::get<std::string>(findings[0].details.at("key")), "plan/0");
}

TEST(StoreWait, AConstantStandsForTheKeyOnBothSides) {
  const auto told =
      job()
          .ranks(2)
          .source("/srv/train.py",
                  "class Resume:\n    KEY = 'resume/from'\n\n    def announce(self):\n"
                  "        self.store.set(self.KEY, path)\n\n    def agree(self):\n"
                  "        return self.store.get(self.KEY)\n")
          .stack(kAll, "native:c10d::TCPStore::get@libtorch_cpu.so | py:agree@/srv/train.py:8")
          .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(std::get<std::string>(findings[0].details.at("key")), "resume/from");
  EXPECT_NE(findings[0].fix.find("train.py:5"), std::string::npos) << findings[0].fix;
}

TEST(StoreWait, AClientThatAnotherThreadWaitsInIsTaken) {
  JobBuilder builder = job();
  builder.ranks(2)
      .stack(0,
             "native:pthread_mutex_lock@libc.so.6 | native:c10d::TCPStore::set@libtorch_cpu.so | "
             "py:stop@/srv/control.py:23")
      .thread(0,
              {.stack = "native:recv@libc.so.6 | native:c10d::TCPStore::doWait@libtorch_cpu.so | "
                        "py:_wait@/srv/control.py:17"})
      .stack(1, kInBarrier);
  const auto findings = asked(kKind, builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 23);
  EXPECT_EQ(findings[0].locations.at(1).line, 17);
}

TEST(StoreWait, BlamesTheRankThatTheWaitNames) {
  const auto findings =
      asked(kKind, job()
                       .ranks(2)
                       .python(0, "/srv/train.py", 10, "main")
                       .waits(0, {.kind = "store-key", .target = "rank:1", .detail = {}})
                       .python(1, "/srv/train.py", 14, "prepare")
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].waiting, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 14);
}

TEST(StoreWait, NamesTheKeyAsTheUserWroteIt) {
  const auto told = [](const std::string& key) {
    return asked(kKind, job()
                            .ranks(2)
                            .stack(kAll, kInGet)
                            .waits(kAll, {.kind = "store-key", .target = key, .detail = {}})
                            .build());
  };
  const auto findings = told("default_pg/0//overhang/1");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("the key overhang/1,"), std::string::npos);
  EXPECT_NE(told("shards//1").at(0).summary.find("shards//1"), std::string::npos);
}

TEST(StoreWait, AccusesNoRankForAKeyThatTheProgramDeletes) {
  const auto told = [](const std::string& drop, const model::RankSet& late) {
    JobBuilder builder = job();
    builder.ranks(4)
        .source("/srv/mail.py",
                "class Mail:\n    def put(self, n, value):\n"
                "        self.store.set(f'note/{n}', value)\n\n    def read(self, n):\n"
                "        return self.store.get(f'note/{n}')\n\n    def drop(self, n):\n"
                "        self.store." +
                    drop + "\n")
        .stack(kAll, kInBarrier);
    for (const model::Rank rank : late) {
      builder.stack(rank,
                    "native:c10d::TCPStore::get@libtorch_cpu.so | py:Mail.read@/srv/mail.py:6");
    }
    return asked(kKind, builder.build());
  };
  const auto findings = told("delete_key(f'note/{n}')", {2});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].culprits.empty()) << "the rank at fault is not known";
  EXPECT_EQ(findings[0].waiting, model::RankSet({0, 1, 2, 3}));
  ASSERT_GE(findings[0].locations.size(), 3u);
  EXPECT_EQ(findings[0].locations[0].line, 6);
  EXPECT_EQ(findings[0].locations[1].line, 9);
  EXPECT_EQ(findings[0].locations[2].line, 3);
  // A different key is deleted, or most ranks have not read the key: its setter has not set it.
  EXPECT_EQ(told("delete_key(f'page/{n}')", {2})[0].culprits, model::RankSet({0, 1, 3}));
  EXPECT_EQ(told("delete_key(f'note/{n}')", {1, 2, 3})[0].culprits, model::RankSet({0}));
}

}  // namespace
}  // namespace ddpdoctor::detectors
