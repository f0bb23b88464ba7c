// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/store_keys.h"

#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

TEST(StoreKeys, AStringStandsForTheEndOfAKey) {
  EXPECT_EQ(written_part("sched/plan/2", "plan/{step}"), "plan/2");
  EXPECT_EQ(written_part("sched/plan/2", "plan/2"), "plan/2");
  EXPECT_EQ(written_part("a/b/plan/2/done", "plan/{step}/done"), "plan/2/done");
  EXPECT_EQ(written_part("sched/plan/2", "plans/{step}"), "");
  EXPECT_EQ(written_part("sched/plan/2", "{step}"), "");
  EXPECT_EQ(written_part("sched/replan/2", "plan/{step}"), "");
}

TEST(StoreKeys, TheKeyOfAPrefixStoreIsNamedAsTheSourceNamesIt) {
  JobBuilder builder = job().ranks(2);
  builder.source("/srv/hand.py",
                 "class Hand:\n    def publish(self, step):\n"
                 "        self.store.set(f'plan/{step}', 'x')\n\n    def fetch(self, step):\n"
                 "        return self.store.get(f'plan/{step}')\n");
  builder.source("/srv/train.py", "for s in range(4):\n    if s % 4 != 2:\n        h.publish(s)\n");
  builder.stack(0, kInBarrier);
  builder.stack(1, "native:c10d::TCPStore::doWait@libtorch_cpu.so | py:fetch@/srv/hand.py:6");
  builder.waits(1, {.kind = "store-key", .target = "sched/plan/2", .detail = {}});
  const auto findings = asked("store-wait", builder.build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_NE(findings[0].summary.find("the key plan/2 (sched/plan/2 in the store)"),
            std::string::npos)
      << findings[0].summary;
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/hand.py");
  EXPECT_TRUE(std::any_of(
      findings[0].locations.begin(), findings[0].locations.end(),
      [](const Location& one) { return one.file == "/srv/train.py" && one.line == 2; }));
}

TEST(StoreKeys, ASetThatHoldsTheNameOfAKeySetsNoKey) {
  const auto setter = [](const std::string& made) {
    const auto told =
        job()
            .ranks(2)
            .source("/srv/hand.py", "import torch.distributed as dist\nkept = " + made +
                                        "\ndef note():\n    kept.add('plan/2')\n")
            .build();
    return setter_by_string(told, "plan/2").has_value();
  };
  EXPECT_FALSE(setter("set()"));
  EXPECT_TRUE(setter("dist.TCPStore('node0', 29500)"));
  EXPECT_TRUE(setter("elsewhere()"));
}

TEST(StoreKeys, AHelperMakesTheKeyInBothPlaces) {
  const auto told = [](const std::string& target) {
    JobBuilder builder = job().ranks(3);
    builder.source("/srv/plans.py",
                   "class Plans:\n    def key(self, epoch):\n        return f'epoch:{epoch}'\n"
                   "    def publish(self, epoch, order):\n        if order == self.cached:\n"
                   "            return\n        self.cached = order\n"
                   "        self.store.set(self.key(epoch), order)\n"
                   "    def fetch(self, epoch):\n        return self.store.get(self.key(epoch))\n");
    builder.stack(0, kInBarrier);
    for (const model::Rank rank : {1, 2}) {
      builder.stack(rank,
                    "native:c10d::TCPStore::doWait@libtorch_cpu.so | "
                    "py:Plans.fetch@/srv/plans.py:10");
      if (!target.empty()) {
        builder.waits(rank, {.kind = "store-key", .target = target, .detail = {}});
      }
    }
    return builder.build();
  };
  for (const std::string target : {"plans/epoch:4", ""}) {
    const auto findings = asked("store-wait", told(target));
    ASSERT_EQ(findings.size(), 1u) << target;
    EXPECT_EQ(findings[0].culprits, model::RankSet({0})) << target;
    EXPECT_EQ(findings[0].locations.at(0).line, 8) << target;
    EXPECT_TRUE(std::any_of(findings[0].locations.begin(), findings[0].locations.end(),
                            [](const Location& one) { return one.line == 5; }))
        << target;
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
