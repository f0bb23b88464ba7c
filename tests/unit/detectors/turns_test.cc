// SPDX-License-Identifier: Apache-2.0
// What the iterators of the loops around both cohorts show about a condition: a rank that has not
// reached it has not decided it.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

using Loops = std::vector<model::Iteration>;

const std::string kBackward = "backward()";

/// Items read by a generator, each of which may have produced an iteration.
model::Iteration loose(std::int64_t done) {
  return {.over = "generator images", .done = done, .left = 100 - done, .loose = true};
}

model::Iteration numbered(std::int64_t done, std::int64_t index) {
  model::Iteration out = loose(done);
  out.index = index;
  return out;
}

/// Rank 0 waits in backward, rank 1 in the all_gather of save(), some lines later.
model::JobModel saving(const Loops& first, const Loops& second) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, R"(
def save(state):
    dist.all_gather_object(states, state)

def main():
    model = DDP(net)
    for x in images:
        loss(x).backward()
        opt.step()
        if timer.due():
            save(model)
)");
  const std::string gather = "all_gather_object";
  const std::string call = "            save(model)";
  for (std::int64_t sequence = 1; sequence <= 8; ++sequence) {
    builder.all_reduce(kAll, sequence, 8, site("main", kBackward));
  }
  builder.all_reduce(0, 9, 8, site("main", kBackward))
      .stack(0, in_backward(at("main", kBackward)))
      .history(1, 9, 9, "all_gather", site("save", gather) + " | " + site("main", call))
      .stack(1, in("all_gather_object", at("save", gather) + " | " + at("main", call)));
  model::JobModel out = builder.build();
  put_loops(out, 0, "main", first);
  put_loops(out, 1, "main", second);
  return out;
}

TEST(Turns, WhoIsBehindABackwardOfTheSameTurnLeftABucketOut) {
  const model::JobModel same = saving({over("list", 9, 20)}, {over("list", 9, 20)});
  const Findings findings = asked("unused-parameters", same);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_TRUE(asked("divergent-branch", same).empty());
}

TEST(Turns, WhoIsInTheNextTurnDidNotTakeTheBranchOfTheOneBefore) {
  const model::JobModel next = saving({over("list", 10, 20)}, {over("list", 9, 20)});
  const Findings findings = asked("divergent-branch", next);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);  // the source of due() is unknown
  EXPECT_NE(findings[0].summary.find("timer.due()"), std::string::npos);
  EXPECT_TRUE(asked("unused-parameters", next).empty());
}

TEST(Turns, WhoseBackwardIsStillToComeLeftNoBucketOut) {
  const auto weighing = [](std::int64_t step) {
    JobBuilder builder = job();
    builder.ranks(2).source(kTrain, R"(
def weight(word):
    dist.all_gather_object(counts, word)

def main():
    for word, x in batches:
        factor = weight(word)
        loss(x).backward()
)");
    for (std::int64_t sequence = 1; sequence <= 8; ++sequence) {
      builder.all_reduce(kAll, sequence, 8, site("main", kBackward));
    }
    builder.all_reduce(0, 9, 8, site("main", kBackward))
        .stack(0, in_backward(at("main", kBackward)))
        .history(1, 9, 9, "all_gather", site("weight", "gather") + " | " + site("main", "factor"))
        .stack(1, in("all_gather_object", at("weight", "gather") + " | " + at("main", "factor")));
    model::JobModel out = builder.build();
    put_loops(out, 0, "main", {over("list", 9, 20)});
    put_loops(out, 1, "main", {over("list", step, 20)});
    return out;
  };
  EXPECT_TRUE(asked("unused-parameters", weighing(9)).empty());
}

TEST(Turns, WithoutACountBothAreSaid) {
  for (const Loops& unknown : {Loops{}, Loops{{.over = "Images"}}}) {
    const Findings findings = asked("divergent-branch", saving(unknown, unknown));
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
    EXPECT_NE(findings[0].fix.find("unused"), std::string::npos);
  }
}

TEST(Turns, TheNumberOfAnEnumerateIsBelievedBeforeTheItemsOfAGenerator) {
  EXPECT_EQ(asked("unused-parameters", saving({numbered(12, 9)}, {numbered(14, 9)})).size(), 1U);
  EXPECT_EQ(asked("divergent-branch", saving({numbered(12, 10)}, {numbered(12, 9)})).size(), 1U);
}

/// Rank 1 is after the loop over batches, rank 0 in it.
model::JobModel shortened(const std::string& epochs, const std::string& way_out) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, "\ndef main():\n    " + epochs + R"(
        for x in data(epoch):
            loss(x).backward()
        if self.should_stop:
            )" + way_out + R"(
        dist.barrier()
)");
  for (std::int64_t sequence = 1; sequence <= 8; ++sequence) {
    builder.all_reduce(kAll, sequence, 8, site("main", kBackward));
  }
  builder.all_reduce(0, 9, 8, site("main", kBackward))
      .stack(0, in_backward(at("main", kBackward)))
      .barrier(1, 9, site("main", "barrier"))
      .stack(1, in("barrier", at("main", "barrier")));
  return builder.build();
}

TEST(Turns, AnOuterLoopIsAskedFirst) {
  for (const std::int64_t epoch : {3, 4}) {
    model::JobModel told = shortened("for epoch in range(100):", "continue");
    put_loops(told, 0, "main", {over("range", epoch, 100), {.over = "generator data"}});
    put_loops(told, 1, "main", {over("range", 3, 100)});
    const bool same = epoch == 3;
    EXPECT_EQ(asked("uneven-inputs", told).size(), same ? 1U : 0U);
    EXPECT_EQ(asked("divergent-branch", told).size(), same ? 0U : 1U);
  }
}

TEST(Turns, WhoStandsBehindABreakHasNotTakenIt) {
  const model::JobModel job = shortened("while True:", "break");
  const Findings findings = asked("uneven-inputs", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("for x in data(epoch)"), std::string::npos);
  EXPECT_TRUE(asked("divergent-branch", job).empty());
  EXPECT_EQ(asked("divergent-branch", shortened("while True:", "continue")).size(), 1U);
}

/// Rank 0 evaluates with the DDP model, `before` the barrier in which rank 1 is.
model::JobModel evaluating(std::int64_t step_of_other) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, R"(
def maybe(step):
    return net(x)

def main():
    for step in range(100):
        loss(x).backward()
        score = maybe(step)
        if step % val.due == 0:
            dist.barrier()
)");
  for (std::int64_t sequence = 1; sequence <= 8; ++sequence) {
    builder.all_reduce(kAll, sequence, 8, site("main", kBackward));
  }
  builder.history(0, 9, 9, "broadcast", site("maybe", "net(x)") + " | " + site("main", "score"))
      .stack(0, in_ddp_forward(at("maybe", "net(x)") + " | " + at("main", "score")))
      .barrier(1, 9, site("main", "barrier"))
      .stack(1, in("barrier", at("main", "barrier")));
  model::JobModel out = builder.build();
  put_loops(out, 0, "main", {over("range", 9, 100)});
  put_loops(out, 1, "main", {over("range", step_of_other, 100)});
  return out;
}

TEST(Turns, WhoHasNotComeToABranchIsNotPartedByIt) {
  const Findings findings = asked("rank0-only-ddp-forward", evaluating(9));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_TRUE(asked("divergent-branch", evaluating(9)).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
