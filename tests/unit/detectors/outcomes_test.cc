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
