// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

constexpr std::string_view kKind = "fork-after-cuda";

constexpr std::string_view kLog = R"log([rank1]: Traceback (most recent call last):
[rank1]:   File "/srv/train.py", line 40, in <module>
[rank1]:   File "/srv/train.py", line 12, in step
[rank1]:   File "/opt/site-packages/torch/nn/modules/module.py", line 1500, in forward
[rank1]: RuntimeError: Cannot re-initialize CUDA in forked subprocess.
)log";

TEST(ForkAfterCuda, ReadsTheMessageTheRankAndTheLine) {
  const auto findings = asked(
      kKind, job().ranks(2).stack(0, kInBarrier).exited(1, 1).log({}, std::string(kLog)).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].confidence, Confidence::kCertain);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 12);
  EXPECT_FALSE(findings[0].fix.empty());
}

TEST(ForkAfterCuda, IsSilentOnOtherMessages) {
  EXPECT_TRUE(
      asked(kKind,
            job().ranks(2).stack(kAll, kInBarrier).log(1, "[rank1]: ValueError: other").build())
          .empty());
}

TEST(ForkAfterCuda, OnlySuspectsAMessageThatTheJobSurvived) {
  EXPECT_TRUE(nothing_likely(asked(kKind, job()
                                              .ranks(2)
                                              .stack(kAll, kInBarrier)
                                              .log({}, std::string(kLog))
                                              .progress(model::Progress::kMoving)
                                              .build())));
}

JobBuilder forked(bool used) {
  return job()
      .ranks(2)
      .stack(kAll, kInBarrier)
      .fact("cuda-fork",
            {{"used", used},
             {"call", std::string("cudaMalloc")},
             {"parent_pid", std::int64_t{7}},
             {"file", std::string("/srv/data.py")},
             {"line", std::int64_t{31}}},
            1, pid_of(1));
}

TEST(ForkAfterCuda, BelievesTheAgentThatAChildUsedIt) {
  const auto findings = asked(kKind, forked(true).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({1}));
  EXPECT_EQ(findings[0].locations.at(0).line, 31);
}

TEST(ForkAfterCuda, IsSilentWhileNoChildUsesIt) {
  EXPECT_TRUE(asked(kKind, forked(false).build()).empty());
}

JobBuilder forked_child(bool context) {
  JobBuilder told = job().ranks(2).stack(kAll, kInBarrier).stack(0, kInBatchWait);
  if (context) {
    told.fact("cuda-context", {{"device", std::int64_t{0}}}, 0, pid_of(0));
  }
  return told.worker(0,
                     "native:futex_wait@libc.so.6 | native:cudaGetDevice@libcudart.so.12 | "
                     "py:collate@/srv/data.py:33 | " +
                         kForkedWorker);
}

TEST(ForkAfterCuda, SeesAForkedChildInCudaWhoseParentHasAContext) {
  const auto findings = asked(kKind, forked_child(true).build());
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_EQ(findings[0].locations.at(0).line, 33);
}

TEST(ForkAfterCuda, IsSilentWhenTheParentHasNoContext) {
  EXPECT_TRUE(asked(kKind, forked_child(false).build()).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
