// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

/// Two calls in step(), which run() retries in a loop or calls without a try; rank 2 makes the
/// first one twice.
model::JobModel second_attempt(const std::string& loop, const std::string& shield) {
  const std::string file = "/srv/train.py";
  const auto way = [&](const std::string& call) {
    return "step@" + file + "~" + call + " | run@" + file + "~return step() | main@" + file +
           "~run()";
  };
  return job()
      .ranks(3)
      .source(file,
              "def step():\n    dist.broadcast(lr)\n    dist.all_reduce(parse(line))\n"
              "def run():\n    " +
                  loop + ":\n        " + shield +
                  ":\n            return step()\n"
                  "        except OSError:\n            pass\ndef main():\n    run()\n")
      .call(kAll, {.operation = "broadcast", .sequence = 1, .site = way("dist.broadcast")})
      .call({0, 1}, {.operation = "all_reduce", .sequence = 2, .site = way("dist.all_reduce")})
      .call(2, {.operation = "broadcast", .sequence = 2, .site = way("dist.broadcast")})
      .build();
}

TEST(PartedByException, ARankThatBeganAFunctionAnewIsRankRaised) {
  const auto findings = asked("rank-raised", second_attempt("for k in range(3)", "try"));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.at(0).line, 2);
  EXPECT_TRUE(asked("mismatched-op", second_attempt("for k in range(3)", "try")).empty());
  EXPECT_TRUE(asked("rank-raised", second_attempt("if retry", "try")).empty());
  EXPECT_EQ(asked("mismatched-op", second_attempt("if retry", "try")).size(), 1U);
}

/// summary() makes one call every second step, through a helper with this loop; rank 2 makes it
/// twice at the end. `between`: another call follows it in each step.
model::JobModel repeated(const std::string& loop, bool between) {
  const std::string file = "/srv/train.py";
  const std::string step = "main@" + file + "~dist.all_reduce";
  const std::string summary = "summary@" + file + "~dist.reduce | again@" + file +
                              "~return function() | main@" + file + "~again(summary)";
  JobBuilder builder = job();
  builder.ranks(3).source(file,
                          "def summary():\n    dist.reduce(total, 0)\n    journal.append(total)\n"
                          "def again(function):\n    " +
                              loop +
                              ":\n        try:\n            return function()\n"
                              "        except OSError:\n            time.sleep(1)\n"
                              "def main():\n    for step in steps:\n        dist.all_reduce(grad)\n"
                              "        again(summary)\n");
  const model::RankSet all = {0, 1, 2};
  std::int64_t sequence = 0;
  for (int i = 0; i < 3; ++i) {
    if (between) {
      builder.call(all, {.operation = "all_reduce", .sequence = ++sequence, .site = step});
    }
    builder.call(all, {.operation = "reduce", .sequence = ++sequence, .site = summary});
  }
  builder.call({0, 1}, {.operation = "all_reduce", .sequence = sequence + 1, .site = step});
  builder.call(2, {.operation = "reduce", .sequence = sequence + 1, .site = summary});
  return builder.build();
}

TEST(PartedByException, ACallThatAHelperRepeatedOnOneRankIsRankRaised) {
  const auto findings = asked("rank-raised", repeated("for k in range(3)", true));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_EQ(findings[0].locations.at(0).line, 2);
  EXPECT_TRUE(asked("divergent-branch", repeated("for k in range(3)", true)).empty());
  EXPECT_TRUE(asked("rank-raised", repeated("if retry", true)).empty());
  EXPECT_TRUE(asked("rank-raised", repeated("for k in range(3)", false)).empty());
}

/// Rank 1 is in a step of a segment that a helper with this body calls; the others have finished
/// the segment. The reducers of rank 1 began `more` backward passes.
model::JobModel segment(const std::string& body, int more) {
  const std::string file = "/srv/train.py";
  const std::string step = "segment@" + file + "~loss.backward()";
  const std::string way = step + " | again@" + file + "~function()" + " | main@" + file + "~again(";
  const std::string show = "main@" + file + "~dist.all_gather";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(
          file,
          "def segment():\n    for x in part:\n        loss.backward()\ndef again(function):\n" +
              body + "def main():\n    for part in parts:\n        again(segment)\n" +
              "        dist.all_gather(out, loss)\n")
      .call(kAll, {.operation = "all_reduce", .sequence = 1, .site = way})
      .call({0, 2}, {.operation = "all_gather", .sequence = 2, .site = show})
      .call(1, {.operation = "all_reduce", .sequence = 2, .site = way});
  for (const model::Rank rank : {0, 1, 2}) {
    builder.fact("reducer", {{"backward", std::int64_t{9 + (rank == 1 ? more : 0)}}}, rank);
  }
  return builder.build();
}

TEST(PartedByException, ARetriedSegmentIsRepeatedNotSkipped) {
  const std::string retry =
      "    for k in range(3):\n        try:\n            return function()\n"
      "        except OSError:\n            log.info('again')\n";
  const auto findings = asked("rank-raised", segment(retry, 5));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
  EXPECT_EQ(findings[0].locations.at(1).line, 7);
  EXPECT_TRUE(asked("divergent-branch", segment(retry, 5)).empty());
  EXPECT_TRUE(asked("rank-raised", segment(retry, 0)).empty());
  EXPECT_TRUE(asked("rank-raised", segment("    function()\n", 5)).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
