// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "shm-exhausted";

JobBuilder story(std::int64_t used) {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .fact("shm-usage", {{"path", std::string("/dev/shm")},
                          {"bytes_total", std::int64_t{64 << 20}},
                          {"bytes_used", used}});
}

TEST(ShmExhausted, IsCertainOfAFullShmBesideABusError) {
  const auto findings = asked(kKind, story(64 << 20).killed(1, 7).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
}

TEST(ShmExhausted, OnlySuspectsAFullShm) {
  EXPECT_TRUE(nothing_likely(asked(kKind, story(64 << 20).build())));
}

TEST(ShmExhausted, IsSilentWhileThereIsRoom) {
  EXPECT_TRUE(asked(kKind, story(1 << 20).killed(1, 7).build()).empty());
}

TEST(ShmExhausted, OfAWorkerIsToldAtTheLineThatWaitsForItsBatch) {
  const std::string said =
      "[rank0]: Traceback (most recent call last):\n"
      "[rank0]:   File \"/srv/train.py\", line 16, in <module>\n"
      "[rank0]:     for volumes in loader:\n"
      "[rank0]:   File \"/v/site-packages/torch/_utils.py\", line 794, in reraise\n"
      "[rank0]:     raise exception\n"
      "[rank0]: RuntimeError: Caught RuntimeError in DataLoader worker process 0.\n"
      "[rank0]: Original Traceback (most recent call last):\n"
      "[rank0]:   File \"/v/site-packages/torch/storage.py\", line 414, in _new_shared\n"
      "[rank0]:     return cls._new_using_fd_cpu(size)\n"
      "[rank0]: RuntimeError: unable to allocate shared memory(shm) for file </torch_2_7_0>: No "
      "space left on device (28)\n";
  const auto findings = asked(kKind, job().ranks(2).log({}, said).build());
  ASSERT_EQ(findings.size(), 1u);
  ASSERT_FALSE(findings[0].locations.empty());
  EXPECT_EQ(findings[0].locations[0].line, 16);
}

TEST(ShmExhausted, SuspectsABusErrorOfWhoHadSegmentsMapped) {
  const auto told = [](int signal, model::Rank mapper) {
    return asked(kKind, story(1 << 20)
                            .killed(1, signal)
                            .fact("shm-mapped",
                                  {{"path", std::string("/dev/shm/torch_7")},
                                   {"count", std::int64_t{3}},
                                   {"bytes", std::int64_t{1 << 30}}},
                                  mapper, pid_of(mapper))
                            .build());
  };
  const auto findings = told(7, 1);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_TRUE(told(11, 1).empty());
  EXPECT_TRUE(told(7, 0).empty());
}

TEST(ShmExhausted, ReadsTheMessage) {
  EXPECT_EQ(asked(kKind, job()
                             .ranks(2)
                             .log(1, "This might be caused by insufficient shared memory (shm).")
                             .build())
                .size(),
            1u);
}

JobBuilder refused(std::int64_t error) {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .fact("shm-failure",
            {{"path", std::string("/dev/shm/torch_7")},
             {"errno", error},
             {"bytes", std::int64_t{1 << 30}},
             {"file", std::string("/srv/data.py")},
             {"line", std::int64_t{12}}},
            0, pid_of(0));
}

TEST(ShmExhausted, ABusErrorOfAWorkerIsThatOfTheRankThatLostOne) {
  const auto findings =
      asked("shm-exhausted",
            job()
                .log({},
                     "ERROR: Unexpected bus error encountered in worker. This might be caused by "
                     "insufficient shared memory (shm).\n"
                     "[rank2]: Traceback (most recent call last):\n"
                     "[rank2]:   File \"/srv/train.py\", line 61, in main\n"
                     "[rank2]:     for batch in loader:\n"
                     "[rank2]: RuntimeError: DataLoader worker (pid(s) 5124) exited unexpectedly\n")
                .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({2}));
  ASSERT_FALSE(findings[0].locations.empty());
  EXPECT_EQ(findings[0].locations[0].line, 61);
}

TEST(ShmExhausted, BelievesTheAgentThatASegmentWasRefused) {
  const auto findings = asked(kKind, refused(28).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
}

TEST(ShmExhausted, DoesNotTakeOtherRefusalsForAFullOne) {
  EXPECT_TRUE(asked(kKind, refused(13).build()).empty());
}

TEST(ShmExhausted, TakesABusErrorInALogAsSecondFact) {
  const auto findings = asked(
      kKind, story(64 << 20).log(0, "worker (pid 7) is killed by signal: Bus error.").build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
}

TEST(ShmExhausted, OnlySuspectsASegmentThatFailedForAReasonOfItsOwn) {
  const auto confidence = [](const std::string& before) {
    model::JobModel told;
    told.logs.push_back({.rank = {},
                         .text = before +
                                 "\n[1] shmutils.cc:114 NCCL WARN Error while creating "
                                 "shared memory segment /dev/shm/nccl-N (size 9637888)\n"});
    return asked("shm-exhausted", told).at(0).confidence;
  };
  EXPECT_EQ(confidence("[1] shmutils.cc:103 NCCL WARN Cuda failure 'invalid argument'"),
            Confidence::kPossible);
  EXPECT_NE(confidence("[1] shm.h:28 NCCL WARN Call to fallocate failed : No space left on device"),
            Confidence::kPossible);
}

TEST(ShmExhausted, ASizeThatNoMachineHasIsNone) {
  for (const std::string size : {"1099511627776G", "18446744073709551616", "-4M", "0", "M", "-"}) {
    const std::string log = "SIGBUS\nshm " + size + " 1M 1M 1% /dev/shm\n";
    EXPECT_TRUE(asked(kKind, job().ranks(2).log({}, log).ended().build()).empty()) << size;
  }
}

TEST(ShmExhausted, ABusErrorAndASmallShmInOneLogAreLikely) {
  const std::string dies =
      "(RayWorker pid=1917) *** SIGBUS received at time=1702363316 on cpu 21 ***\n";
  for (const std::string size :
       {"WARNING: The object store is using /tmp instead of /dev/shm because /dev/shm has only "
        "67108864 bytes available.\n",
        "shm              64M   12M   52M  19% /dev/shm\n"}) {
    const auto findings = asked(kKind, job().ranks(2).log({}, size + dies).ended().build());
    ASSERT_EQ(findings.size(), 1u) << size;
    EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
    EXPECT_TRUE(asked(kKind, job().ranks(2).log({}, size).ended().build()).empty());
  }
  EXPECT_TRUE(
      asked(kKind,
            job().ranks(2).log({}, dies + "shm   64G   12M   52G  1% /dev/shm\n").ended().build())
          .empty());
}

TEST(ShmExhausted, ASegmentOfNcclThatCannotGrowIsLikelyWithoutAReason) {
  const auto findings =
      asked(kKind, job()
                       .ranks(2)
                       .log({},
                            "[1] misc/shmutils.cc:72 NCCL WARN Error: failed to extend "
                            "/dev/shm/nccl-3IIBT4 to 9637892 bytes\n")
                       .ended()
                       .build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kLikely);
}

}  // namespace
}  // namespace ddpdoctor::detectors
