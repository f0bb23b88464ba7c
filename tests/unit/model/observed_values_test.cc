// SPDX-License-Identifier: Apache-2.0
// Values of expressions as facts, by line and by rank.
#include "collector/model/observed_values.h"

#include <gtest/gtest.h>

namespace ddpdoctor::model {
namespace {

SeenValue seen(Rank rank, ValueRole role, std::string expression, std::string value) {
  return {.rank = rank,
          .role = role,
          .file = "/srv/train.py",
          .line = 14,
          .function = "main",
          .at = 15,
          .expression = std::move(expression),
          .value = std::move(value),
          .state = ValueState::kKnown,
          .reason = {}};
}

JobModel job_of(const std::vector<SeenValue>& values) {
  JobModel job;
  for (const SeenValue& one : values) {
    job.facts.push_back(fact_of(one));
  }
  return job;
}

TEST(ObservedValues, ComeBackAsTheyWere) {
  SeenValue stale = seen(2, ValueRole::kDecision, "x > 1", "True");
  stale.state = ValueState::kStale;
  stale.reason = "`x` is assigned in line 9";
  const auto back = observed_values(job_of({stale}));
  ASSERT_EQ(back.size(), 1U);
  EXPECT_EQ(back[0].rank, 2);
  EXPECT_EQ(back[0].role, ValueRole::kDecision);
  EXPECT_EQ(back[0].line, 14);
  EXPECT_EQ(back[0].value, "True");
  EXPECT_EQ(back[0].state, ValueState::kStale);
  EXPECT_EQ(back[0].reason, stale.reason);
}

TEST(ObservedValues, OfALineAreGroupedTheFewestRanksFirst) {
  const JobModel job = job_of(
      {seen(0, ValueRole::kDecision, "leader", "True"),
       seen(1, ValueRole::kDecision, "leader", "False"),
       seen(2, ValueRole::kDecision, "leader", "False"), seen(0, ValueRole::kOperand, "alike", "3"),
       seen(1, ValueRole::kOperand, "alike", "3"), seen(0, ValueRole::kHeld, "self.mode", "'a'")});
  const auto groups = values_at(job, "/srv/train.py", 14);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(said(groups), "True on rank 0, False on ranks 1 and 2");
  EXPECT_TRUE(values_at(job, "/srv/train.py", 13).empty());
  EXPECT_TRUE(values_at(job, "/srv/other.py", 14).empty());
}

TEST(ObservedValues, ThatAreNotKnownSayWhy) {
  SeenValue unknown = seen(0, ValueRole::kDecision, "f()", "");
  unknown.state = ValueState::kUnknown;
  unknown.reason = "it calls f";
  const JobModel job = job_of({unknown, seen(1, ValueRole::kDecision, "f()", "True")});
  EXPECT_EQ(said(values_at(job, "/srv/train.py", 14)),
            "unknown on rank 0 (it calls f), True on rank 1");
}

TEST(ObservedValues, HeldAlikeOrNamingTheRankAreDropped) {
  JobModel job = job_of(
      {seen(0, ValueRole::kHeld, "alike", "'x'"), seen(1, ValueRole::kHeld, "alike", "'x'"),
       seen(0, ValueRole::kHeld, "device", "'cuda:0'"),
       seen(1, ValueRole::kHeld, "device", "'cuda:1'"), seen(0, ValueRole::kHeld, "mode", "'ro'"),
       seen(1, ValueRole::kHeld, "mode", "'rw'")});
  drop_idle_values(job.facts);
  const auto left = observed_values(job);
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].expression, "mode");
}

TEST(ObservedValues, ThatNoFindingShowsAreNotRecorded) {
  JobModel job = job_of({seen(0, ValueRole::kDecision, "leader", "True"),
                         seen(0, ValueRole::kHeld, "mode", "'ro'"),
                         seen(0, ValueRole::kHeld, "other", "'ro'")});
  job.facts.push_back({.rank = 0, .pid = {}, .kind = "exit", .fields = {}});
  auto facts = job.facts;
  keep_reported_values(facts, {.lines = {{"/srv/train.py", 14}}, .sentences = {}});
  EXPECT_EQ(facts.size(), 2U);  // the decision, and an expression without a value
  facts = job.facts;
  keep_reported_values(facts, {.lines = {}, .sentences = {"`mode` is 'ro' on rank 0"}});
  EXPECT_EQ(facts.size(), 2U);
}

}  // namespace
}  // namespace ddpdoctor::model
