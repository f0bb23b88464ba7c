// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "fd-exhausted";

JobBuilder story(std::int64_t count) {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .stack(0, "py:load@/srv/train.py:7")
      .fact("fd-usage", {{"count", count}, {"limit", std::int64_t{1024}}}, 0, pid_of(0));
}

TEST(FdExhausted, NamesTheProcessWithoutDescriptors) {
  const auto findings = asked(kKind, story(1022).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
}

TEST(FdExhausted, IsSilentWhileThereAreSome) {
  EXPECT_TRUE(asked(kKind, story(900).build()).empty());
}

TEST(FdExhausted, ReadsTheMessage) {
  EXPECT_EQ(
      asked(kKind, job().ranks(2).log(1, "OSError: [Errno 24] Too many open files").build()).size(),
      1u);
}

TEST(FdExhausted, IsOfTheRankThatRaisedByTheLaunchersWord) {
  const auto told = job()
                        .ranks(2)
                        .exited(1, 1)
                        .exited(0, 0)
                        .ended()
                        .log({},
                             "Traceback (most recent call last):\n"
                             "  File \"/srv/train.py\", line 7, in main\n    next(batches)\n"
                             "RuntimeError: received 0 items of ancdata\n")
                        .build();
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
}

std::map<std::string, model::FactValue> failed_at(double time) {
  return {{"call", std::string("socket")},        {"errno", std::int64_t{24}},
          {"file", std::string("/srv/train.py")}, {"line", std::int64_t{9}},
          {"function", std::string("connect")},   {"time", time}};
}

TEST(FdExhausted, BelievesTheAgentThatACallFailed) {
  const auto findings = asked(kKind, job()
                                         .ranks(2)
                                         .stack(kAll, kInBarrier)
                                         .fact("fd-failure", failed_at(7), 1, pid_of(1))
                                         .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

TEST(FdExhausted, PointsAtTheFailedCallRatherThanWhereTheProcessStands) {
  const auto findings =
      asked(kKind, story(1024).fact("fd-failure", failed_at(7), 0, pid_of(0)).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

TEST(FdExhausted, ForgivesAFailureThatTheRankGotOver) {
  auto builder =
      job().ranks(2).stack(kAll, kInBarrier).fact("fd-failure", failed_at(7), 1, pid_of(1));
  model::JobModel model = builder.barrier(kAll, 1).build();
  for (model::CollectiveCall& call : model.collectives) {
    call.time = 8;
  }
  EXPECT_TRUE(asked(kKind, model).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
