// SPDX-License-Identifier: Apache-2.0
// An exception that one rank swallowed in a loop, and with it skipped the step's collective.
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

/// The step check `with suppress(…)`; rank 1 has left the loop.
JobBuilder suppressing(const std::string& items) {
  const std::string in_step = "dist.all_reduce(values)";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, "def step(line):\n  values = parse(line)\n  dist.all_reduce(values)\n\n" +
                          items +
                          "\ndef main():\n  for line in lines(rank):\n"
                          "    with suppress(ValueError):\n      step(line)\n"
                          "  dist.all_gather_object(out, 1)\n")
      .stack(kAll, in("all_reduce", at("step", in_step) + " | " + at("main", "  step(line)")))
      .stack(1, in("all_gather_object", at("main", "all_gather_object")));
  return builder;
}

TEST(Swallowed, AWithThatSuppressesIsNamed) {
  const std::string open_end = "def lines(rank):\n  for text in open(path):\n    yield text\n";
  const Findings findings = asked("uneven-inputs", suppressing(open_end).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].fix.find("check `with suppress(ValueError)` (train.py:"),
            std::string::npos);
}

TEST(Swallowed, AWithThatSuppressesPartsThoseWhoGetEquallyMany) {
  const auto generator = [](const std::string& before, const std::string& suite) {
    return "def lines(rank):\n" + before + "  for i in range(120):\n" + suite;
  };
  const model::JobModel job = suppressing(generator("", "    yield text(i, rank)\n")).build();
  const Findings findings = asked("divergent-branch", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("`with suppress(ValueError)`"), std::string::npos);
  EXPECT_TRUE(asked("uneven-inputs", job).empty());
  const auto counting_down = [](const std::string& most) {
    return "def lines(rank):\n  left = " + most +
           "\n  while left:\n    yield text(left, rank)\n    left -= 1\n";
  };
  EXPECT_EQ(asked("divergent-branch", suppressing(counting_down("120")).build()).size(), 1U);
  for (const std::string& unequal :
       {generator("", "    if text(i): yield i\n"),
        generator("", "    if text(i) is None:\n      return\n    yield i\n"),
        generator("", "    yield from text(i)\n"),
        generator("  if rank > 2:\n    return\n", "    yield i\n"),
        generator("", "    for x in text(i):\n      yield x\n"),
        generator("", "    yield i\n  yield from more\n"), counting_down("120 - rank"),
        counting_down("len(text(rank))")}) {
    EXPECT_TRUE(asked("divergent-branch", suppressing(unequal).build()).empty()) << unequal;
    EXPECT_EQ(asked("uneven-inputs", suppressing(unequal).build()).size(), 1U) << unequal;
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
