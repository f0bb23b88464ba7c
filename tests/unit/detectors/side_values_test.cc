// SPDX-License-Identifier: Apache-2.0
// If the values of a condition are known, its names are not used.
#include <string>

#include <gtest/gtest.h>

#include "collector/model/observed_values.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;

std::string source_with(const std::string& condition) {
  return "def main():\n    for step in range(100):\n        out = model(x).sum()\n"
         "        out.backward()\n        if " +
         condition + ":\n            dist.barrier()\n";
}

JobBuilder told(const std::string& condition) {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, source_with(condition));
  builder.stack(kAll, in_backward(at("main", "out.backward()")));
  builder.stack(0, in("barrier", at("main", "dist.barrier()")));
  return builder;
}

SeenValue seen(model::Rank rank, const std::string& expression, const std::string& value) {
  return {.rank = rank,
          .role = ValueRole::kDecision,
          .file = kTrain,
          .line = 5,
          .function = "main",
          .at = rank == 0 ? 6 : 4,
          .expression = expression,
          .value = value,
          .state = ValueState::kKnown,
          .reason = {}};
}

/// With the values of the condition on rank 0, and on the others.
model::JobModel with_values(const std::string& condition, const std::string& odd,
                            const std::string& rest) {
  model::JobModel job = told(condition).build();
  for (int rank = 0; rank < 4; ++rank) {
    job.facts.push_back(model::fact_of(seen(rank, condition, rank == 0 ? odd : rest)));
  }
  return job;
}

/// The condition is equal on all ranks now; on rank 0, records show the call that it led to.
model::JobModel equal_now(bool ran_on) {
  JobBuilder builder = told("full(self.held)");
  builder
      .call({1, 2, 3},
            {.operation = "all_reduce", .sequence = 9, .site = site("main", "out.backward()")})
      .call(0, {.operation = "barrier", .sequence = 9, .site = site("main", "dist.barrier()")});
  if (ran_on) {
    builder.stack(kAll, in("barrier", at("main", "dist.barrier()")));
    builder.call({1, 2, 3},
                 {.operation = "barrier", .sequence = 10, .site = site("main", "dist.barrier()")});
  }
  model::JobModel job = builder.build();
  for (int rank = 0; rank < 4; ++rank) {
    job.facts.push_back(model::fact_of(seen(rank, "full(self.held)", "True")));
  }
  return job;
}

TEST(Values, OfALaterIterationRefuteNothing) {
  EXPECT_TRUE(asked("divergent-branch", equal_now(false)).empty());
  EXPECT_EQ(asked("divergent-branch", equal_now(true)).size(), 1U);
}

TEST(Values, OfAnyConditionThatDiffersNameItForCertain) {
  for (const std::string condition : {"cfg.tim", "cfg.time", "args.use_amp", "args.verbose"}) {
    const Findings found = asked("divergent-branch", with_values(condition, "True", "False"));
    ASSERT_EQ(found.size(), 1U) << condition;
    EXPECT_EQ(found[0].culprits, (model::RankSet{0}));
    EXPECT_EQ(found[0].confidence, Confidence::kCertain);
    EXPECT_EQ(found[0].locations.back().line, 5) << condition;
  }
}

TEST(Values, ThatAreTheNumberOfTheRankMakeATestOfIt) {
  model::JobModel job = with_values("me == chosen", "True", "False");
  for (int rank = 0; rank < 4; ++rank) {
    SeenValue operand = seen(rank, "me", std::to_string(rank));
    operand.role = ValueRole::kOperand;
    job.facts.push_back(model::fact_of(operand));
  }
  EXPECT_EQ(asked("rank-conditional-collective", job).size(), 1U);
  EXPECT_TRUE(asked("divergent-branch", job).empty());
}

TEST(Values, ThatAreTheSameOnBothSidesRefuteTheBranch) {
  EXPECT_EQ(asked("divergent-branch", told("loss < best").build()).size(), 1U);
  EXPECT_TRUE(asked("divergent-branch", with_values("loss < best", "True", "True")).empty());
  EXPECT_TRUE(asked("rank-conditional-collective", with_values("is_main", "True", "True")).empty());
}

TEST(Values, ThatMayHaveChangedSinceSayNothing) {
  model::JobModel job = told("loss < best").build();
  for (int rank = 0; rank < 4; ++rank) {
    SeenValue stale = seen(rank, "loss < best", "True");
    stale.state = ValueState::kStale;
    job.facts.push_back(model::fact_of(stale));
  }
  EXPECT_EQ(asked("divergent-branch", job).size(), 1U);
}

TEST(Values, HeldDifferentlyAreNamedWhereNoConditionIsKnown) {
  model::JobModel job = told("loss < best").build();
  for (int rank = 0; rank < 4; ++rank) {
    SeenValue mode = seen(rank, "self.mode", rank == 0 ? "'ro'" : "'rw'");
    mode.role = ValueRole::kHeld;
    job.facts.push_back(model::fact_of(mode));
    SeenValue seed = seen(rank, "seed", std::to_string(42 + rank));
    seed.role = ValueRole::kHeld;
    job.facts.push_back(model::fact_of(seed));
  }
  const Findings found = asked("divergent-branch", job);
  ASSERT_EQ(found.size(), 1U);
  const bool named =
      std::any_of(found[0].evidence.begin(), found[0].evidence.end(), [](const Evidence& evidence) {
        return evidence.text == "`self.mode` is 'ro' on rank 0, 'rw' on ranks 1-3 (main)";
      });
  EXPECT_TRUE(named);
  EXPECT_FALSE(std::any_of(
      found[0].evidence.begin(), found[0].evidence.end(),
      [](const Evidence& evidence) { return evidence.text.find("seed") != std::string::npos; }));
}

constexpr const char* kRows = R"(
def main():
    rows = everything[dist.get_rank()::2]
    for row in rows:
        value = parse(row)
        if value is None:
            continue
        dist.all_reduce(value)
    dist.barrier()

def parse(row):
    try:
        return float(row)
    except ValueError:
        return None
)";

/// Rank 1 has left the loop over a list of `length`; the others are in the last of 40 iterations.
model::JobModel out_of_rows(std::int64_t length) {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kRows);
  builder.stack(kAll, in("all_reduce", at("main", "dist.all_reduce(value)")));
  builder.stack(1, in("barrier", at("main", "dist.barrier()")));
  model::JobModel job = builder.build();
  for (const int rank : {0, 2, 3}) {
    put_loops(job, rank, "main", {{.over = "list", .done = 40, .left = 0}});
  }
  SeenValue gone_over = seen(1, "for row in rows:", "ended");
  gone_over.role = ValueRole::kLoop;
  gone_over.items = length;
  gone_over.line = 3;
  job.facts.push_back(model::fact_of(gone_over));
  return job;
}

TEST(Values, OfOneLengthOnAllRanksRefuteThatTheDataEnded) {
  const Findings found = asked("divergent-branch", out_of_rows(40));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].culprits, (model::RankSet{1}));
  const auto names_line = [&found](int line) {
    return std::any_of(found[0].locations.begin(), found[0].locations.end(),
                       [line](const auto& place) { return place.line == line; });
  };
  EXPECT_TRUE(names_line(13));  // the clause that returned None
  EXPECT_TRUE(names_line(3));   // the loop that runs equally often on all ranks
  EXPECT_TRUE(asked("uneven-inputs", out_of_rows(40)).empty());
}

TEST(Values, OfOtherLengthsMeanThatTheDataEnded) {
  EXPECT_EQ(asked("uneven-inputs", out_of_rows(39)).size(), 1U);
  EXPECT_TRUE(asked("divergent-branch", out_of_rows(39)).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
