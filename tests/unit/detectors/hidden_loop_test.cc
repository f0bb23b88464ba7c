// SPDX-License-Identifier: Apache-2.0
// An epoch in one statement: consume(map(step, loader)).
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// Rank 0 is in the barrier after `statement`, rank 1 in the backward of a step called by it.
JobBuilder told(const std::string& statement, const std::string& before = "",
                const std::string& indent = "  ", std::int64_t steps = 20) {
  const std::string source = "def step(model, batch):\n  model(batch).backward()\n\ndef main():\n" +
                             before + indent + statement + "\n" + indent + "dist.barrier()\n";
  const std::string way = " | " + site("main", statement);
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, source);
  builder.history(kAll, 1, steps, "all_reduce", site("step", "backward") + way);
  builder.all_reduce(1, steps + 1, 1024, site("step", "backward") + way);
  builder.barrier(0, steps + 1, site("main", "dist.barrier"));
  builder.stack(0, in("barrier", at("main", "dist.barrier")));
  builder.stack(1, in_backward(at("step", "backward") + " | " + at("main", statement)));
  return builder;
}

const std::string kMap = "last = consume(map(partial(step, model), loader))";

TEST(HiddenLoop, OfCallbacksDoesNotHideTheComprehensionBeforeIt) {
  const std::string source =
      "from torch.utils.data import DataLoader\n"
      "def learn(row):\n  dist.all_reduce(grads)\n"
      "def emit(callbacks):\n  for one in callbacks:\n    one.at_end()\n"
      "def at_end(self):\n  dist.all_gather(out, loss)\n"
      "def fit():\n  for epoch in range(9):\n"
      "    losses = [learn(row) for row in DataLoader(data)]\n    emit(callbacks)\n";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, source);
  builder.stack({0, 1}, in("all_reduce", at("learn", "all_reduce") + " | " +
                                             at("fit.<locals>.<listcomp>", "losses = ") + " | " +
                                             at("fit", "losses = ")));
  builder.stack(2, in("all_gather", at("at_end", "all_gather") + " | " + at("emit", "one.at_end") +
                                        " | " + at("fit", "    emit")));
  const Findings findings = asked("uneven-inputs", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2})) << findings[0].summary;
}

TEST(HiddenLoop, IsAComprehensionThatTheOthersLeftARoundEarlier) {
  const std::string source =
      "def results(bank):\n  return {name: one.compute() for name, one in bank}\n"
      "def fit():\n  for epoch in range(9):\n    model(x).backward()\n    results(bank)\n";
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, source);
  builder.stack({0, 2}, in_backward(at("fit", "backward")));
  builder.stack(1,
                in("barrier", at("results.<locals>.<dictcomp>", "one.compute") + " | " +
                                  at("results", "one.compute") + " | " + at("fit", "    results")));
  EXPECT_TRUE(asked("mismatched-op", builder.build()).empty());
}

TEST(HiddenLoop, OfLayersIsNotLeftByARankThatHasNotReachedTheForward) {
  const auto story = [](const std::string& test) {
    const std::string source =
        "def forward(self, x):\n  return [layer(x) for layer in self.layers]\n"
        "def fit(model, loader):\n  rank = dist.get_rank()\n  for x in loader:\n    if " +
        test + ":\n      dist.barrier()\n    model(x)\n";
    JobBuilder builder = job();
    builder.ranks(3).source(kTrain, source);
    builder.stack({1, 2}, in("all_gather_into_tensor",
                             at("forward.<locals>.<listcomp>", "layer(x)") + " | " +
                                 at("forward", "layer(x)") + " | " + at("fit", "    model(x)")));
    builder.stack(0, in("barrier", at("fit", "      dist.barrier")));
    return builder.build();
  };
  EXPECT_EQ(asked("rank-conditional-collective", story("rank == 0")).size(), 1U);
  EXPECT_TRUE(asked("collective-count", story("rank == 0")).empty());
  EXPECT_TRUE(asked("collective-count", story("x.sum() > 3")).empty());
  EXPECT_TRUE(asked("uneven-inputs", story("x.sum() > 3")).empty());
}

TEST(HiddenLoop, IsAMapThatOneRankHasLeft) {
  const Findings findings = asked("uneven-inputs", told(kMap).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_NE(findings[0].summary.find("`map(partial(step, model), loader)`"), std::string::npos)
      << findings[0].summary;
  EXPECT_TRUE(asked("mismatched-op", told(kMap).build()).empty());
}

TEST(HiddenLoop, IsNoStatementThatMapsNothingOrRanOnce) {
  EXPECT_TRUE(
      asked("uneven-inputs", told("last = consume(model.map(step), loader)").build()).empty());
  EXPECT_TRUE(asked("uneven-inputs", told(kMap, "", "  ", 3).build()).empty());
}

TEST(HiddenLoop, IsNotToldOfAnEpochAmongOthers) {
  const model::JobModel job = told(kMap, "  for epoch in range(9):\n", "    ").build();
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
}

/// Calls at `line` in every execution of `statement`: three, and one more on rank 1 now, where the
/// others are in the barrier after it.
model::JobModel at_a_line(const std::string& statement, const std::string& library = {},
                          const std::string& caller = "stats()") {
  const std::string source = "def stats():\n  " + statement +
                             "\n\ndef main():\n  for x in loader:\n    step(x)\n"
                             "    " +
                             caller + "\n    dist.barrier()\n";
  const std::string call = "stats@/srv/train.py:2 | main@/srv/train.py:7";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, source)
      .history(kAll, 1, 3, "all_reduce", call)
      .history(kAll, 4, 4, "barrier", "main@/srv/train.py:8")
      .history(kAll, 5, 7, "all_reduce", call)
      .history({0, 2}, 8, 8, "barrier", "main@/srv/train.py:8")
      .history(1, 8, 8, "all_reduce", call)
      .stack(kAll, in("barrier", "py:main@/srv/train.py:8"))
      .stack(1, in("all_reduce", library + "py:stats@/srv/train.py:2 | py:main@/srv/train.py:7"));
  return builder.build();
}

TEST(HiddenLoop, IsNoComprehensionInAnArgument) {
  constexpr const char* kMean = "return mean(v)";
  EXPECT_EQ(asked("collective-count", at_a_line(kMean, "", "[stats() for m in meters]")).size(),
            1U);
  for (const char* line : {"Plan([m for m in meters]).stats()", "stats(*[m for m in meters])"}) {
    EXPECT_TRUE(asked("collective-count", at_a_line(kMean, "", line)).empty()) << line;
  }
  const std::string own = "dist.all_reduce(torch.cat([p.grad for p in net.parameters()]))";
  EXPECT_TRUE(asked("collective-count", at_a_line(own)).empty());
}

TEST(HiddenLoop, IsAComprehensionThatOneRankGoesRoundOnceMore) {
  for (const char* statement : {"return {k: mean(v) for k, v in sorted(sums.items())}",
                                "handles = [dist.all_reduce(b) for _, b in module.named_buffers()]",
                                "total = sum(mean(v) for v in sums)"}) {
    const Findings findings = asked("collective-count", at_a_line(statement));
    ASSERT_EQ(findings.size(), 1U) << statement;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{1})) << statement;
    EXPECT_EQ(findings[0].locations.back().line, 2);
    EXPECT_NE(findings[0].summary.find("`for "), std::string::npos) << findings[0].summary;
    EXPECT_TRUE(asked("mismatched-op", at_a_line(statement)).empty());
  }
}

TEST(HiddenLoop, IsALibraryThatCallsForEachElement) {
  const std::string library =
      "py:recursively_apply@/v/site-packages/accelerate/utils/operations.py:120 | ";
  const Findings findings = asked("collective-count", at_a_line("acc.reduce(parts)", library));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("`acc.reduce(parts)`"), std::string::npos);
}

TEST(HiddenLoop, IsNotSeenInAStatementThatNothingRepeats) {
  for (const char* statement : {"acc.reduce(parts)", "wait_for('all ranks')", "f(x)"}) {
    EXPECT_TRUE(asked("collective-count", at_a_line(statement)).empty()) << statement;
  }
}

/// Each element of the comprehension makes a barrier and a gather; rank 2 goes over one more, while
/// the barriers that the others make after it match its first call.
model::JobModel matched_by_order(const std::string& of_rank_2) {
  const std::string inside = site("compute", "return {") + " | " + site("main", "run(compute)");
  const std::string after = site("main", "run(compute)");
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain,
              "def compute(self):\n  return {n: m.compute() for n, m in sorted(self.m.items())}\n\n"
              "def main():\n  run(compute)\n")
      .history(kAll, 1, 1, "barrier", inside)
      .history(kAll, 2, 2, "all_gather", inside)
      .history({0, 1}, 3, 4, "barrier", after)
      .history(2, 3, 3, "barrier", of_rank_2.empty() ? inside : of_rank_2)
      .history(2, 4, 4, "all_gather", inside)
      .stack(kAll, in("barrier", at("main", "run(compute)")))
      .stack(2, in("all_gather", at("compute", "return {") + " | " + at("main", "run(compute)")));
  return builder.build();
}

TEST(HiddenLoop, IsAComprehensionOfWhichOneCallWasMatchedByItsOrder) {
  const model::JobModel told = matched_by_order("");
  const Findings findings = asked("collective-count", told);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
  EXPECT_EQ(findings[0].locations.at(0).line, 2);
  EXPECT_TRUE(asked("mismatched-op", told).empty());
  EXPECT_TRUE(asked("collective-count", matched_by_order(site("main", "run(compute)"))).empty());
}

/// A comprehension makes two calls of different size in each step, which a decorator keeps alive;
/// rank 1 has made `calls` of them and is behind the loop over steps, the others in the next one.
model::JobModel with_whole_steps(std::int64_t calls) {
  const std::string each = "w = [dist.all_reduce(p) for p in model.parameters()]";
  const std::string from =
      site("step", each) + " | " + site("call", "return f(*a)") + " | " + site("main", "step(i)");
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain,
                          "def keep(f):\n  def call(*a):\n    try:\n      return f(*a)\n"
                          "    except ValueError:\n      return None\n  return call\n\n"
                          "@keep\ndef step(i):\n  " +
                              each +
                              "\n\ndef main():\n  for i in range(9):\n    step(i)\n"
                              "  dist.all_gather_object(out, 1)\n");
  for (std::int64_t call = 1; call <= calls; ++call) {
    builder.call(kAll, {.operation = "all_reduce",
                        .sequence = call,
                        .site = from,
                        .count = call % 2 == 0 ? 1600 : 2400});
  }
  builder.call({0, 2}, {.operation = "all_reduce",
                        .sequence = calls + 1,
                        .site = from,
                        .count = calls % 2 == 0 ? 2400 : 1600});
  builder.stack({0, 2}, in("all_reduce", at("step", each) + " | " + at("call", "return f(*a)") +
                                             " | " + at("main", "step(i)")));
  builder.stack(1, in("all_gather_object", at("main", "all_gather_object")));
  return builder.build();
}

TEST(HiddenLoop, IsNoneOfWhichARankLacksAWholeStep) {
  const Findings findings = asked("divergent-branch", with_whole_steps(8));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("except ValueError"), std::string::npos);
  EXPECT_TRUE(asked("collective-count", with_whole_steps(8)).empty());
  EXPECT_EQ(asked("collective-count", with_whole_steps(7)).size(), 1U);
}

/// Each heading gathers one object, its size and its bytes; rank 2 has made `headings` of them and
/// is in the barrier after the function, the others are in the next one.
model::JobModel settles(int headings) {
  const std::string way = site("digest", "gather_object") + " | " + site("settle", "return {") +
                          " | " + site("main", "settle(page)");
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain,
                          "def digest(rows):\n  return gather_object(rows)\n\ndef settle(page):\n"
                          "  return {k: digest(page[k]) for k in sorted(page)}\n\n"
                          "def main():\n  settle(page)\n  dist.barrier()\n");
  std::int64_t number = 0;
  for (int i = 0; i < headings; ++i) {
    for (const char* dtype : {"int64", "uint8"}) {
      builder.call(kAll, {.operation = "all_gather",
                          .sequence = ++number,
                          .site = way,
                          .count = dtype[0] == 'i' ? 1 : 40,
                          .dtype = dtype});
    }
  }
  builder
      .call({0, 1}, {.operation = "all_gather",
                     .sequence = number + 1,
                     .site = way,
                     .count = 1,
                     .dtype = "int64"})
      .barrier(2, number + 1, site("main", "dist.barrier"))
      .stack({0, 1},
             in("all_gather", at("digest", "gather_object") + " | " + at("settle", "return {") +
                                  " | " + at("main", "settle(page)")))
      .stack(2, in("barrier", at("main", "dist.barrier")));
  return builder.build();
}

TEST(HiddenLoop, IsAComprehensionInAFunctionThatOneRankHasLeft) {
  for (const int headings :
       {1, 3}) {  // the two calls of one object are not a pass over all headings
    const model::JobModel told = settles(headings);
    const Findings findings = asked("collective-count", told);
    ASSERT_EQ(findings.size(), 1U) << headings;
    EXPECT_EQ(findings[0].culprits, (model::RankSet{2}));
    EXPECT_NE(findings[0].summary.find("`for k in sorted(page)`"), std::string::npos)
        << findings[0].summary;
    EXPECT_TRUE(asked("mismatched-op", told).empty());
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
