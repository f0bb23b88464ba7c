// SPDX-License-Identifier: Apache-2.0
// An exception that one rank swallowed in a loop, and with it the step's collective.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def step(line):
    values = parse(line)
    dist.all_reduce(values)

def main():
    for line in lines:
        try:
            step(line)
        except ValueError:
            log.exception("left out")
    dist.all_gather_object(out, 1)
)";

const std::string kPrinted =
    "Traceback (most recent call last):\n  File \"/srv/train.py\", line 8, in main\n"
    "  File \"/srv/train.py\", line 2, in step\nValueError: could not convert string\n";

JobBuilder told() {
  const std::string in_step = "dist.all_reduce(values)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kSource)
      .stack(kAll, in("all_reduce", at("step", in_step) + " | " + at("main", "  step(line)")))
      .stack(1, in("all_gather_object", at("main", "all_gather_object")));
  return builder;
}

TEST(Swallowed, ThePrintedExceptionIsTheCauseAndNotTheLoop) {
  const model::JobModel job = told().log(1, kPrinted).build();
  const Findings findings = asked("rank-raised", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 2);
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
}

TEST(Swallowed, WhatEveryRankPrintsKeepsNobodyAway) {
  EXPECT_TRUE(nothing_likely(
      asked("rank-raised", told().log(0, kPrinted).log(1, kPrinted).log(2, kPrinted).build())));
}

TEST(Swallowed, AnExceptionFromElsewhereKeepsNobodyAway) {
  EXPECT_TRUE(nothing_likely(
      asked("rank-raised",
            told()
                .log(1,
                     "Traceback (most recent call last):\n  File \"/srv/other.py\", line 8, in "
                     "fetch\nOSError: again\n")
                .build())));
}

TEST(Swallowed, WithoutALogTheTryTakesCertaintyFromTheLoop) {
  const Findings findings = asked("uneven-inputs", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_LE(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].fix.find("swallowed"), std::string::npos);
}

TEST(Swallowed, ATryWithoutAnExceptSwallowsNothing) {
  const std::string in_step = "dist.all_reduce(values)";
  std::string source = kSource;
  const std::string clause = "except ValueError:\n            log.exception(\"left out\")";
  source.replace(source.find(clause), clause.size(), "finally:\n            close()");
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, source)
      .stack(kAll, in("all_reduce", at("step", in_step) + " | " + at("main", "  step(line)")))
      .stack(1, in("all_gather_object", at("main", "all_gather_object")));
  const Findings findings = asked("uneven-inputs", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].fix.find("swallowed"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::detectors
