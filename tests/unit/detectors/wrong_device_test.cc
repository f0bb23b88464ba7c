// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "wrong-device";

JobBuilder context(JobBuilder told, model::Rank rank, std::int64_t device) {
  return told.fact("cuda-context", {{"device", device}}, rank, pid_of(rank));
}

TEST(WrongDevice, NamesTheRankOnTheGpuOfAnother) {
  const auto findings = asked(
      kKind,
      context(context(context(job().ranks(2).stack(kAll, kInBarrier), 0, 0), 1, 0), 1, 1).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].locations.at(0).line, 40);
}

TEST(WrongDevice, IsSilentWhenEachHasItsOwn) {
  EXPECT_TRUE(
      asked(kKind, context(context(job().ranks(2).stack(kAll, kInBarrier), 0, 0), 1, 1).build())
          .empty());
}

TEST(WrongDevice, IsSilentWhereAllShareTheOnlyGpu) {
  EXPECT_TRUE(
      asked(kKind, context(context(job().ranks(2).stack(kAll, kInBarrier), 0, 0), 1, 0).build())
          .empty());
}

JobBuilder on_gpus(const std::vector<std::int64_t>& devices) {
  JobBuilder told = job();
  told.ranks(static_cast<int>(devices.size())).stack(kAll, kInBarrier);
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    told = context(std::move(told), static_cast<model::Rank>(rank), devices[rank]);
  }
  return told;
}

TEST(WrongDevice, NamesTheOneWhoseOwnGpuIsLeftUnused) {
  const auto findings = asked(kKind, on_gpus({0, 1, 0, 3}).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  EXPECT_EQ(findings[0].summary, "ranks 0 and 2 both use GPU 0");
}

TEST(WrongDevice, IsSilentWhereSeveralRanksAreToShareAGpu) {
  EXPECT_TRUE(asked(kKind, on_gpus({0, 1, 0, 1}).build()).empty());
  EXPECT_TRUE(asked(kKind, on_gpus({0, 0, 1, 1}).build()).empty());
}

TEST(WrongDevice, IsSilentWhereRanksNumberTheirGpusDifferently) {
  EXPECT_TRUE(
      asked(kKind, on_gpus({0, 1, 0, 3}).environment(2, "CUDA_VISIBLE_DEVICES", "2").build())
          .empty());
}

TEST(WrongDevice, IsSilentWhereTheJobGetsOn) {
  EXPECT_TRUE(
      asked(kKind, on_gpus({0, 1, 0, 3}).progress(model::Progress::kMoving).build()).empty());
}

TEST(WrongDevice, IsSilentWhereTheJobEndedWell) {
  JobBuilder told = on_gpus({0, 1, 0, 3});
  told.exited(kAll, 0).ended();
  EXPECT_TRUE(asked(kKind, told.build()).empty());
}

TEST(WrongDevice, NamesTheLineThatTookIt) {
  model::JobModel told = on_gpus({0, 1, 0, 3}).build();
  model::Fact& taken = told.facts[2];
  taken.fields["file"] = std::string("/srv/setup.py");
  taken.fields["line"] = std::int64_t{7};
  taken.fields["function"] = std::string("setup");
  const auto findings = asked(kKind, told);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/setup.py");
  EXPECT_EQ(findings[0].locations.at(0).line, 7);
}

TEST(WrongDevice, AddsWhatTheLogsSay) {
  const auto findings =
      asked(kKind,
            context(context(context(job().ranks(2).stack(kAll, kInBarrier), 0, 0), 1, 0), 1, 1)
                .log(1,
                     "Traceback (most recent call last):\n  File \"/srv/load.py\", line 9, in "
                     "load\ntorch.OutOfMemoryError: CUDA out of memory. GPU 0 has a total capacity")
                .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].locations.at(0).file, "/srv/load.py");
}

TEST(WrongDevice, AFullGpuListsProcessesOfOtherRanks) {
  const auto told = [](const std::string& listed) {
    JobBuilder ranks = job();
    for (const model::Rank rank : {0, 1}) {
      ranks.fact("nccl-setup", {{"group_rank", std::int64_t{rank}}, {"size", std::int64_t{3}}}, {},
                 411 + rank);
    }
    return asked(kKind, ranks
                            .log({},
                                 "[rank0]: Traceback (most recent call last):\n"
                                 "[rank0]:   File \"/srv/train.py\", line 9, in step\n"
                                 "[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried "
                                 "to allocate 52.00 MiB. GPU 0 has a total capacity of 31.74 "
                                 "GiB. " +
                                     listed + "Of the allocated memory 20 GiB is allocated.\n")
                            .build());
  };
  const Findings findings =
      told("Process 411 has 20 GiB memory in use. Process 412 has 1.19 GiB memory in use. ");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, model::RankSet{1});
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
  EXPECT_TRUE(told("Process 99 has 1.19 GiB memory in use. ").empty());  // of another job
  EXPECT_TRUE(told("Process 411 has 20 GiB memory in use. ").empty());   // its own
}

}  // namespace
}  // namespace ddpdoctor::detectors
