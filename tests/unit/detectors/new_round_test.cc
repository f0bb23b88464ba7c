// SPDX-License-Identifier: Apache-2.0
// Ranks that have just entered a loop in a function which another rank skipped as a whole.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

/// A step that ends with one all_reduce for each parameter; `skip` is in front of it, indented by
/// four blanks, and `above` at the start of the function that makes the calls.
std::string training(const std::string& skip, const std::string& above = {}) {
  return "def exchange(params, norm):\n" + above +
         "  for p in params:\n    dist.all_reduce(p)\n\ndef main():\n"
         "  for step in range(steps):\n    norm = local_norm(params)\n" +
         skip +
         "    exchange(params, norm)\n    if step % 50 == 49:\n"
         "      dist.all_gather_object(seen, step)\n";
}

const std::string kSkips = "    if norm > spike:\n      continue\n";
const std::string kExchange = "    exchange(params, norm)";

/// Rank `odd` is at the gather, the others in the exchange, in iteration `round` of two.
model::JobModel told(const std::string& source, std::int64_t round, model::Rank odd = 1) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, source)
      .stack(kAll, in("all_reduce", at("exchange", "all_reduce") + " | " + at("main", kExchange)))
      .stack(odd, in("all_gather_object", at("main", "all_gather_object")));
  model::JobModel out = builder.build();
  for (const model::Rank rank : {0, 1, 2}) {
    put_loops(out, rank, "main", {over("range", 50, 100)});
    put_loops(out, rank, "exchange", {over("list", round, 2)});
  }
  return out;
}

TEST(NewRound, OfAFunctionLeftOutIsAContinueBeforeIt) {
  const model::JobModel job = told(training(kSkips), 1);
  const Findings findings = asked("divergent-branch", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("`norm > spike`"), std::string::npos);
  EXPECT_TRUE(asked("collective-count", job).empty());
}

TEST(NewRound, IsNoneWhereTheyAreFurtherInTheLoop) {
  const model::JobModel job = told(training(kSkips), 2);
  EXPECT_TRUE(asked("divergent-branch", job).empty());
  EXPECT_EQ(asked("collective-count", job).size(), 1U);
}

TEST(NewRound, NeedsSomethingThatLeavesTheFunctionOut) {
  for (const char* skip : {"", "    if step < warmup_steps:\n      continue\n"}) {
    const model::JobModel job = told(training(skip), 1);
    EXPECT_TRUE(asked("divergent-branch", job).empty()) << skip;
    EXPECT_EQ(asked("collective-count", job).size(), 1U) << skip;
  }
}

TEST(NewRound, IsAReturnAboveTheLoop) {
  const model::JobModel job = told(training("", "  if norm > spike:\n    return\n"), 1);
  const Findings findings = asked("divergent-branch", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_NE(findings[0].summary.find("`norm > spike`"), std::string::npos);
}

TEST(NewRound, BlamesThoseWhoLeftItOutHoweverMany) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, training(kSkips))
      .stack(kAll, in("all_gather_object", at("main", "all_gather_object")))
      .stack(2, in("all_reduce", at("exchange", "all_reduce") + " | " + at("main", kExchange)));
  model::JobModel job = builder.build();
  put_loops(job, 2, "exchange", {over("list", 1, 2)});
  const Findings findings = asked("divergent-branch", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
  EXPECT_NE(findings[0].summary.find("`norm > spike`"), std::string::npos);
}

/// The same from records alone: `passes` of two parameters, and the waiting ranks' next call.
model::JobModel recorded(int passes, bool first) {
  const std::string from = site("exchange", "all_reduce") + " | " + site("main", kExchange);
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, training(kSkips));
  std::int64_t sequence = 1;
  for (int call = 0; call < 2 * passes + (first ? 0 : 1); ++call) {
    builder.call(kAll, {.operation = "all_reduce",
                        .sequence = sequence++,
                        .site = from,
                        .count = call % 2 == 0 ? 1600 : 2400});
  }
  builder
      .call({0, 2}, {.operation = "all_reduce",
                     .sequence = sequence,
                     .site = from,
                     .count = first ? 1600 : 2400})
      .call(1, {.operation = "all_gather",
                .sequence = sequence,
                .site = site("main", "all_gather_object")});
  return builder.build();
}

TEST(NewRound, IsSeenInWholePassesOfTheRecords) {
  const Findings findings = asked("divergent-branch", recorded(5, true));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_TRUE(asked("collective-count", recorded(5, true)).empty());
  EXPECT_EQ(asked("collective-count", recorded(5, false)).size(), 1U);
  EXPECT_TRUE(asked("divergent-branch", recorded(5, false)).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
