// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

using tests::CallStory;

CallStory the_call() {
  return {.operation = "all_reduce",
          .sequence = 808,
          .site = "step@/srv/train.py:8",
          .count = 1024,
          .dtype = "float32",
          .reduce_op = "sum",
          .state = model::CallState::kStarted};
}

JobBuilder told(const CallStory& call) {
  JobBuilder builder = job();
  builder.ranks(4).backend("nccl").history(kAll, 1, 807).call(kAll, call);
  return builder;
}

JobBuilder told() {
  return told(the_call());
}

TEST(GpuStalled, BlamesNobodyWhenAllRanksAreThere) {
  const Findings findings = asked("gpu-stalled", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].culprits.empty());
  EXPECT_NE(findings[0].summary.find("#808"), std::string::npos);
}

TEST(GpuStalled, GivesTheSetupOfACommunicatorAMinute) {
  const auto after = [](double seconds) {
    JobBuilder builder = job();
    builder.ranks(2).backend("nccl").call(
        kAll, {.operation = "comm_init", .sequence = 1, .state = model::CallState::kStarted});
    model::JobModel model = builder.build();
    model.seconds_without_progress = seconds;
    return asked("gpu-stalled", model);
  };
  EXPECT_TRUE(after(8).empty());
  EXPECT_EQ(after(90).size(), 1U);
}

TEST(GpuStalled, AccusesTheTransportOnlyWhenEverythingWasCompared) {
  const Findings findings = asked("gpu-stalled", told().build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_NE(findings[0].summary.find("no rank is missing"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("transport"), std::string::npos);
  EXPECT_FALSE(findings[0].details.contains("not_compared"));
}

/// The job in which the GPU of rank 2 has not reached the call; that of the last rank is as given.
model::JobModel held_up(std::optional<bool> last) {
  model::JobModel told_job = told().build();
  for (model::CollectiveCall& call : told_job.collectives) {
    if (call.sequence == 808) {
      call.begun = call.rank == 3 ? last : std::optional(call.rank != 2);
    }
  }
  return told_job;
}

TEST(GpuStalled, NamesTheRankWhoseGpuHasNotReachedTheCall) {
  model::JobModel told_job = held_up(true);
  for (const auto& [rank, name] : {std::pair{1, "gemm"}, {2, "gemm"}, {2, "spin_kernel"}}) {
    const bool first = std::string_view(name) == "gemm";
    told_job.facts.push_back({.rank = rank,
                              .pid = {},
                              .kind = "gpu-kernel",
                              .fields = {{"stream", std::int64_t{0}},
                                         {"place", std::int64_t{first ? 2 : 1}},
                                         {"kernel", std::string(name)}}});
    told_job.facts.push_back({.rank = rank,
                              .pid = {},
                              .kind = "gpu-kernel",
                              .fields = {{"stream", std::int64_t{0}},
                                         {"place", std::int64_t{0}},
                                         {"kernel", std::string("ncclDevKernel_Generic")}}});
  }
  const Findings findings = asked("gpu-stalled", told_job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{2});
  EXPECT_FALSE(findings[0].waiting.contains(2));
  EXPECT_NE(findings[0].summary.find("the GPU of rank 2 has not begun all_reduce #808"),
            std::string::npos)
      << findings[0].summary;
  ASSERT_FALSE(findings[0].evidence.empty());
  EXPECT_EQ(findings[0].evidence[0].text,
            "since its collective before, only rank 2 launched spin_kernel");
}

TEST(GpuStalled, BlamesNoGpuIfOneIsUnknownOrNoneHasBegun) {
  EXPECT_TRUE(asked("gpu-stalled", held_up({}))[0].culprits.empty());
  model::JobModel none = held_up(false);
  for (model::CollectiveCall& call : none.collectives) {
    call.begun = call.sequence == 808 ? std::optional(false) : call.begun;
  }
  EXPECT_TRUE(asked("gpu-stalled", none)[0].culprits.empty());
}

struct Lacking {
  const char* part;
  Confidence confidence;
  void (*lose)(CallStory&);
};

void PrintTo(const Lacking& one, std::ostream* out) {
  *out << one.part;
}

class GpuStalledLacks : public testing::TestWithParam<Lacking> {};

TEST_P(GpuStalledLacks, NamesWhatCouldNotBeComparedAndNoTransport) {
  CallStory lesser = the_call();
  GetParam().lose(lesser);
  const Findings findings = asked("gpu-stalled", told(lesser).build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, GetParam().confidence);
  EXPECT_NE(findings[0].summary.find(GetParam().part), std::string::npos) << findings[0].summary;
  EXPECT_NE(findings[0].fix.find(GetParam().part), std::string::npos) << findings[0].fix;
  for (const std::string& text : {findings[0].summary, findings[0].fix}) {
    EXPECT_EQ(text.find("transport"), std::string::npos) << text;
    EXPECT_EQ(text.find("no rank is missing"), std::string::npos) << text;
    EXPECT_EQ(text.find("NCCL_P2P_DISABLE"), std::string::npos) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Parts, GpuStalledLacks,
    testing::Values(
        Lacking{"sizes", Confidence::kPossible, [](CallStory& call) { call.count = {}; }},
        Lacking{"data types", Confidence::kPossible, [](CallStory& call) { call.dtype.clear(); }},
        Lacking{"reduce operations", Confidence::kLikely,
                [](CallStory& call) { call.reduce_op.clear(); }},
        Lacking{"split sizes", Confidence::kPossible,
                [](CallStory& call) { call.operation = "all_to_all_single"; }},
        Lacking{"roots", Confidence::kPossible,
                [](CallStory& call) { call.operation = "broadcast"; }}));

TEST(GpuStalled, DoesNotKnowWhoIsInAGroupWithoutMembers) {
  model::JobModel untold = told().build();
  untold.groups[0].ranks.clear();
  const Findings findings = asked("gpu-stalled", untold);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("members of the group"), std::string::npos);
}

TEST(GpuStalled, NamesTheOldestOfThoseUnderWay) {
  JobBuilder builder = told();
  builder.call(kAll, {.operation = "broadcast",
                      .sequence = 809,
                      .site = "step@/srv/train.py:9",
                      .state = model::CallState::kEnqueued});
  const Findings findings = asked("gpu-stalled", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("called all_reduce #808"), std::string::npos)
      << findings[0].summary;
}

TEST(GpuStalled, OnlySuspectsWhenTheSizeOfTheWorldIsNotKnown) {
  model::JobModel excerpt = told().build();
  excerpt.world_size.reset();
  const Findings findings = asked("gpu-stalled", excerpt);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].confidence, Confidence::kPossible);
  excerpt.groups[0].name = "tp";
  EXPECT_TRUE(asked("gpu-stalled", excerpt).empty()) << "who else is in tp?";
}

TEST(GpuStalled, IsSilentWhenARankIsMissing) {
  JobBuilder builder = job();
  builder.ranks(2).backend("nccl").history(kAll, 1, 3).all_reduce(0, 4);
  EXPECT_TRUE(asked("gpu-stalled", builder.build()).empty());
}

TEST(GpuStalled, IsSilentOnCompletedCallsAndWhileTheJobMoves) {
  EXPECT_TRUE(
      asked("gpu-stalled", job().ranks(4).backend("nccl").history(kAll, 1, 10).build()).empty());
  EXPECT_TRUE(asked("gpu-stalled", moving(told().build())).empty());
}

TEST(GpuStalled, IsSilentWhenARankIsUnobserved) {
  JobBuilder builder = job();
  builder.ranks(3).backend("nccl").unobserved(2);
  builder.call({0, 1},
               {.operation = "all_reduce", .sequence = 808, .state = model::CallState::kStarted});
  EXPECT_TRUE(asked("gpu-stalled", builder.build()).empty());
}

TEST(GpuStalled, IsSilentWhenRanksPartedInAnotherGroup) {
  JobBuilder builder = told();
  builder.group("1", {0, 1}, "tp");
  builder.call(0, {.operation = "all_gather",
                   .sequence = 1,
                   .group = "1",
                   .state = model::CallState::kStarted});
  EXPECT_TRUE(asked("gpu-stalled", builder.build()).empty());
}

TEST(GpuStalled, DoesNotDependOnTheOrderOfRanks) {
  EXPECT_EQ(essence(asked("gpu-stalled", told().build())),
            essence(asked("gpu-stalled", records_reversed(told().build()))));
}

}  // namespace
}  // namespace ddpdoctor::detectors
