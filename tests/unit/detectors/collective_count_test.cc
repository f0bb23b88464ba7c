// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def reduce_losses(losses):
    for name in sorted(losses):
        dist.all_reduce(losses[name])

def main():
    for step in range(100):
        reduce_losses(losses)
        dist.barrier()
)";

JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kSource).stack(kAll, in("barrier", at("main", "barrier")));
  builder.stack(1, in("all_reduce", at("reduce_losses", "all_reduce") + " | " +
                                        at("main", "    reduce_losses(losses)")));
  return builder;
}

TEST(CollectiveCount, NamesTheRankWithOneKeyMore) {
  const Findings findings = asked("collective-count", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 3);
  EXPECT_TRUE(findings[0].summary.ends_with("each iteration calls all_reduce"))
      << findings[0].summary;  // not the call in which the others are waiting
}

/// Rank 1 is in a call within this loop, the others are after it.
Findings asked_of_loop(std::string_view kind, const std::string& loop, const std::string& call) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, "def sync(out):\n    " + loop + ":\n        " + call +
                          "\n\ndef main():\n    sync(out)\n    dist.barrier()\n")
      .stack(kAll, in("barrier", at("main", "barrier")))
      .stack(1, in("all_reduce", at("sync", call) + " | " + at("main", "    sync(out)")));
  return asked(kind, builder.build());
}

TEST(CollectiveCount, KnowsALoopByWhatItsCallTakes) {
  const std::vector<std::pair<std::string, std::string>> over_keys = {
      {"for k in sorted(out)", "dist.all_reduce(out[k])"},
      {"for k in out", "dist.all_reduce(out[k])"},
      {"for value in out", "dist.all_reduce(value)"},
      {"for k in batch_stats", "dist.all_reduce(batch_stats[k])"},
      {"for k, v in step_log.items()", "reduce_mean(v)"}};
  for (const auto& [loop, call] : over_keys) {
    const Findings findings = asked_of_loop("collective-count", loop, call);
    ASSERT_EQ(findings.size(), 1U) << loop;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
    EXPECT_NE(findings[0].summary.find(loop), std::string::npos);
    EXPECT_TRUE(asked_of_loop("uneven-inputs", loop, call).empty()) << loop;
  }
  const std::vector<std::pair<std::string, std::string>> over_inputs = {
      {"for batch in batches", "dist.all_reduce(net(batch))"},
      {"for i in range(n)", "dist.all_reduce(out[i])"},
      {"for x in out", "dist.all_reduce(total)"},
      {"for path in sorted(shards)", "dist.all_reduce(total)"},
      {"for i in sampler", "dist.all_reduce(out[i])"}};
  for (const auto& [loop, call] : over_inputs) {
    EXPECT_TRUE(asked_of_loop("collective-count", loop, call).empty()) << loop;
  }
}

TEST(CollectiveCount, KnowsAListThatWasCollectedJustAbove) {
  constexpr const char* kWorks = R"(
def sync(model):
    works = []
    for p in model.parameters():
        if p.grad is not None:
            works.append(p)
    for w in works:
        dist.all_reduce(w)

def main():
    for step in range(100):
        sync(model)
        dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kWorks).stack(kAll, in("barrier", at("main", "barrier")));
  builder.stack(
      1, in("all_reduce", at("sync", "dist.all_reduce") + " | " + at("main", "    sync(model)")));
  ASSERT_EQ(asked("collective-count", builder.build()).size(), 1U);
  EXPECT_TRUE(asked("uneven-inputs", builder.build()).empty());
}

TEST(CollectiveCount, LeavesLoopsOverBatchesToUnevenInputs) {
  JobBuilder builder = job();
  builder.ranks(3).source(
      kTrain,
      "def main():\n    for batch in loader:\n        dist.all_reduce(x)\n    dist.barrier()\n");
  builder.stack({0, 1}, in("all_reduce", at("main", "all_reduce")))
      .stack(2, in("barrier", at("main", "barrier")));
  EXPECT_TRUE(asked("collective-count", builder.build()).empty());
  EXPECT_EQ(asked("uneven-inputs", builder.build()).size(), 1U);
}

// All run the loop of steps equally often: a rank that waits in it made one more call in some step.
JobBuilder filtered(const std::string& bound) {
  const std::string text = R"(
STEPS = 300
def average(model):
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)

def main():
    for step in range()" + bound +
                           R"():
        average(model)
    dist.barrier()
)";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, text).stack(kAll, in("barrier", at("main", "dist.barrier")));
  builder.stack(1, in("all_reduce",
                      at("average", "dist.all_reduce") + " | " + at("main", "    average(model)")));
  return builder;
}

TEST(CollectiveCount, IsWhatDiffersInALoopThatAllGoRoundEquallyOften) {
  for (const char* bound : {"300", "0, 300", "STEPS"}) {
    const model::JobModel told = filtered(bound).build();
    const Findings findings = asked("collective-count", told);
    ASSERT_EQ(findings.size(), 1U) << bound;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
    EXPECT_EQ(findings[0].locations.at(0).function, "average");
    EXPECT_NE(findings[0].summary.find("decides which iterations call one"), std::string::npos);
    EXPECT_NE(findings[0].fix.find("zero"), std::string::npos);
    EXPECT_TRUE(asked("uneven-inputs", told).empty()) << bound;
  }
}

TEST(CollectiveCount, IsNotSaidOfALoopWhoseLengthEachRankDecides) {
  EXPECT_TRUE(asked("collective-count", filtered("len(batches)").build()).empty());
  EXPECT_EQ(asked("uneven-inputs", filtered("len(batches)").build()).size(), 1U);
}

TEST(CollectiveCount, IsSilentOnTheHealthyTwin) {
  JobBuilder builder = told();
  builder.stack(1, in("barrier", at("main", "barrier")));
  EXPECT_TRUE(asked("collective-count", builder.build()).empty());
  EXPECT_TRUE(asked("collective-count", moving(told().build())).empty());
}

TEST(CollectiveCount, IsOnlyPossibleWhenARankIsUnobserved) {
  JobBuilder builder = told();
  builder.unobserved(0);
  EXPECT_TRUE(nothing_likely(asked("collective-count", builder.build())));
}

TEST(CollectiveCount, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("collective-count", told().build())),
            essence(asked("collective-count", records_reversed(told().build()))));
}

/// The loop goes over the object itself; `base` is what its class derives from.
Findings of_own_object(std::string_view kind, const std::string& base) {
  const std::string file = "class Averages" + base +
                           ":\n"
                           "    def together(self):\n"
                           "        for name in sorted(self):\n"
                           "            value = self[name].clone()\n"
                           "            dist.all_reduce(value)\n\n"
                           "def main():\n"
                           "    for step in range(12):\n"
                           "        Averages(losses(step)).together()\n"
                           "        dist.barrier()\n";
  const std::string reduce = site("Averages.together", "dist.all_reduce(value)") + " | " +
                             site("main", "        Averages");
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, file)
      .history(kAll, 1, 2, "all_reduce", reduce)
      .call(kAll, {.operation = "barrier", .sequence = 3, .site = site("main", "barrier")})
      .history(kAll, 4, 5, "all_reduce", reduce)
      .call({0, 1}, {.operation = "all_reduce", .sequence = 6, .site = reduce})
      .call(2, {.operation = "barrier", .sequence = 6, .site = site("main", "barrier")})
      .stack(kAll, in("all_reduce", at("Averages.together", "dist.all_reduce(value)") + " | " +
                                        at("main", "        Averages")))
      .stack(2, in("barrier", at("main", "barrier")));
  return asked(kind, builder.build());
}

TEST(CollectiveCount, KnowsALoopOverAnObjectThatIsADict) {
  const Findings findings = of_own_object("collective-count", "(dict)");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_TRUE(of_own_object("mismatched-op", "(dict)").empty());
  EXPECT_TRUE(of_own_object("collective-count", "").empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
