// SPDX-License-Identifier: Apache-2.0
// What a deciding line resulted in on ranks whose memory does not show it.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "collector/model/observed_values.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;

constexpr const char* kSource = R"(
def save():
    if time.time() > due:
        dist.barrier()

def main():
    while True:
        step()
        save()
        dist.all_reduce(x)
)";

/// Rank 0 is in the barrier of save(); the others have returned from it.
JobBuilder told() {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kSource);
  builder.stack(kAll, in("all_reduce", at("main", "dist.all_reduce(x)")));
  builder.stack(0, in("barrier", at("save", "dist.barrier()") + " | " + at("main", "save()")));
  return builder;
}

SeenValue seen(model::Rank rank, const std::string& value, ValueState state) {
  return {.rank = rank,
          .role = ValueRole::kDecision,
          .file = kTrain,
          .line = 2,
          .function = "save",
          .at = 3,
          .expression = "time.time() > due",
          .value = value,
          .state = state,
          .reason = state == ValueState::kKnown ? "" : "the clock runs"};
}

/// "True on 0 (reached line 3); False on 1-3 (skipped line 3)" for the line that decides.
std::string outcomes(const model::JobModel& told) {
  std::string out;
  const Findings found = asked("divergent-branch", told);
  EXPECT_EQ(found.size(), 1U);
  for (const Finding& finding : found) {
    for (const Location& place : finding.locations) {
      for (const Outcome& one : place.outcomes) {
        EXPECT_EQ(place.line, 2);
        EXPECT_EQ(one.expression, "time.time() > due");
        out += (out.empty() ? "" : "; ") + one.value + " on " + one.ranks.ranges() + " (" +
               one.reason + ")";
      }
    }
  }
  return out;
}

TEST(Outcomes, FollowFromTheLinesThatTheRanksReached) {
  EXPECT_EQ(outcomes(told().build()), "True on 0 (reached line 3); False on 1-3 (skipped line 3)");
}

TEST(Outcomes, AreNotDerivedWhereTheValueWasRead) {
  model::JobModel with = told().build();
  with.facts.push_back(model::fact_of(seen(0, "True", ValueState::kKnown)));
  EXPECT_EQ(outcomes(with), "False on 1-3 (skipped line 3)");
}

TEST(Outcomes, NameAValueThatIsAnotherOneNow) {
  model::JobModel with = told().build();
  with.facts.push_back(model::fact_of(seen(0, "True", ValueState::kKnown)));
  with.facts.push_back(model::fact_of(seen(1, "True", ValueState::kStale)));
  with.facts.push_back(model::fact_of(seen(2, "False", ValueState::kStale)));
  with.facts.push_back(model::fact_of(seen(3, "", ValueState::kUnknown)));
  EXPECT_EQ(outcomes(with), "False on 2-3 (skipped line 3); False on 1 (skipped line 3; now True)");
}

constexpr const char* kGenerator = R"(
def steps():
    while not requested():
        yield step
def requested():
    return time.time() > due
def main():
    for step in steps():
        dist.all_reduce(x)
    dist.barrier()
)";

TEST(Outcomes, AreTheOppositeOfWhatWasReadOnTheOtherSide) {
  JobBuilder builder = job();
  builder.ranks(4).source(kTrain, kGenerator);
  builder.stack(kAll, in("all_reduce", at("main", "dist.all_reduce(x)")));
  builder.stack(0, in("barrier", at("main", "dist.barrier()")));
  model::JobModel told = builder.build();
  for (const model::Rank rank : {1, 2, 3}) {
    SeenValue inside = seen(rank, "True", ValueState::kKnown);
    inside.expression = "not requested()";
    told.facts.push_back(model::fact_of(inside));
  }
  const Findings found = asked("divergent-branch", told);
  ASSERT_EQ(found.size(), 1U);
  const auto with = std::find_if(found[0].locations.begin(), found[0].locations.end(),
                                 [](const Location& one) { return !one.outcomes.empty(); });
  ASSERT_NE(with, found[0].locations.end());
  EXPECT_EQ(with->outcomes.front().value, "False");
  EXPECT_EQ(with->outcomes.front().ranks, (model::RankSet{0}));
  EXPECT_EQ(with->outcomes.front().reason, "went the other way");
}

TEST(Outcomes, OfALoopStandBesideWhatWasReadOfIt) {
  const auto outcomes_of_loop = [](const std::string& read) {
    JobBuilder builder = job();
    builder.ranks(3).source(kTrain,
                            "def main():\n    for batch in loader:\n"
                            "        dist.all_reduce(x)\n    dist.barrier()\n");
    builder.stack(kAll, in("all_reduce", at("main", "dist.all_reduce(x)")));
    builder.stack(0, in("barrier", at("main", "dist.barrier()")));
    model::JobModel told = builder.build();
    for (const model::Rank rank : {1, 2}) {
      SeenValue loop = seen(rank, read, read.empty() ? ValueState::kUnknown : ValueState::kKnown);
      loop.role = ValueRole::kLoop;
      loop.expression = "loader";
      loop.function = "main";
      told.facts.push_back(model::fact_of(loop));
    }
    std::string out;
    for (const Finding& finding : asked("uneven-inputs", told)) {
      for (const Location& place : finding.locations) {
        for (const Outcome& one : place.outcomes) {
          out += one.value + " on " + one.ranks.ranges();
        }
      }
    }
    return out;
  };
  EXPECT_EQ(outcomes_of_loop("iteration 9 of 10"), "ended on 0");
  EXPECT_EQ(outcomes_of_loop(""), "");
}

/// Of the places of the only finding: "ended on 0 (…); not ended on 1 (…)".
std::string all_outcomes(const Findings& found) {
  std::string out;
  EXPECT_EQ(found.size(), 1U);
  for (const Finding& finding : found) {
    for (const Location& place : finding.locations) {
      for (const Outcome& one : place.outcomes) {
        out += (out.empty() ? "" : "; ") + one.expression + " " + one.value + " on " +
               one.ranks.ranges() + " (" + one.reason + ")";
      }
    }
  }
  return out;
}

TEST(Outcomes, OfALoopWithoutReadValuesComeFromRecordedCalls) {
  const auto with = [](std::int64_t first) {
    JobBuilder builder = job();
    builder.ranks(2).source(kTrain,
                            "def main():\n    for batch in loader:\n"
                            "        dist.all_reduce(x)\n    dist.barrier()\n");
    builder.history(kAll, first, 9, "all_reduce", site("main", "dist.all_reduce(x)"))
        .all_reduce(1, 10, 1, site("main", "dist.all_reduce(x)"));
    builder.stack(1, in("all_reduce", at("main", "dist.all_reduce(x)")));
    builder.stack(0, in("barrier", at("main", "dist.barrier()")));
    return all_outcomes(asked("uneven-inputs", builder.build()));
  };
  EXPECT_EQ(
      with(1),
      "for batch in loader ended on 0 (after 9 recorded calls); for batch in loader not ended "
      "on 1 (in recorded call 10)");
}

TEST(Outcomes, OfALoopOfEqualLengthAreWhetherItEnded) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, R"(
def unroll(model, ids):
    for length in range(16):
        ids = model(ids)
        if done(ids):
            break
    return ids
def main():
    loss = score(unroll(model, prompt))
    loss.backward()
)");
  builder.stack(1,
                "native:c10d::Work::wait | "
                "py:all_gather_into_tensor@/v/torch/distributed/distributed_c10d.py:3100 | "
                "py:_pre_forward@/v/torch/distributed/fsdp/_fully_shard/_fsdp_state.py:380 | " +
                    at("unroll", "ids = model") + " | " + at("main", "loss = score"));
  builder.stack(0, in("reduce_scatter_tensor", at("main", "loss.backward")));
  model::JobModel told = builder.build();
  for (const auto& [rank, read] : {std::pair{0, "16 items"}, {1, "iteration 4 of 16"}}) {
    SeenValue loop = seen(rank, read, ValueState::kKnown);
    loop.role = ValueRole::kLoop;
    loop.expression = "range(16)";
    loop.function = "unroll";
    loop.items = 16;
    told.facts.push_back(model::fact_of(loop));
  }
  EXPECT_EQ(all_outcomes(asked("generate-length", told)),
            "range(16) ended on 0 (is past the loop; now 16 items)");
}

TEST(Outcomes, OfAnIfInTheForwardAreTheOppositeOfWhatTheOthersHad) {
  JobBuilder builder = job();
  builder.ranks(2).source(kTrain, R"(
def forward(self, x, use):
    if use:
        x = self.extra(x)
    return x
def main():
    model(x, use).backward()
    dist.barrier()
)");
  builder.stack(0, in_backward(at("main", "backward")))
      .stack(1, in("barrier", at("main", "barrier")));
  model::JobModel told = builder.build();
  SeenValue use = seen(0, "True", ValueState::kKnown);
  use.expression = "use";
  use.function = "forward";
  told.facts.push_back(model::fact_of(use));
  EXPECT_EQ(all_outcomes(asked("unused-parameters", told)), "use False on 1 (went the other way)");
}

TEST(Outcomes, OfAFindingThatIsOnlyPossibleAreNone) {
  const Findings found = asked("divergent-branch", told().unobserved(3).build());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].confidence, Confidence::kPossible);
  for (const Location& place : found[0].locations) {
    EXPECT_TRUE(place.outcomes.empty());
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
