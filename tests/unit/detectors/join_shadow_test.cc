// SPDX-License-Identifier: Apache-2.0
// A collective of the user inside torch's Join, when one rank has no more data.
#include <gtest/gtest.h>

#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr const char* kSource = R"(
def add(self, loss):
    self.n += 1
    if self.n % 10 == 0:
        dist.all_gather_object(parts, loss)

def main():
    with model.join():
        for x in data:
            loss(x).backward()
            running.add(loss)
    dist.barrier()
)";

std::string shadows(const std::string& user) {
  return "native:pthread_cond_wait | native:c10d::Work::wait | "
         "py:all_reduce@/v/site-packages/torch/distributed/distributed_c10d.py:3100 | "
         "py:Join._get_num_nonjoined_procs@/v/site-packages/torch/distributed/algorithms/"
         "join.py:280 | py:Join.__exit__@/v/site-packages/torch/distributed/algorithms/"
         "join.py:240 | " +
         user;
}

const std::string kOwn =
    in("all_gather_object", at("add", "all_gather_object") + " | " + at("main", "running.add"));

JobBuilder told(const std::string& of_the_others) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kSource)
      .stack(kAll, of_the_others)
      .stack(0, shadows(at("main", "    with model.join")));
  return builder;
}

TEST(JoinShadow, DoesNotAnswerForACallOfTheUsersOwn) {
  const model::JobModel job = told(kOwn).build();
  const Findings findings = asked("uneven-inputs", job);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0}));
  EXPECT_NE(findings[0].summary.find("`for x in data`"), std::string::npos);
  EXPECT_NE(findings[0].summary.find("Join"), std::string::npos);
  EXPECT_NE(findings[0].fix.find("out of the Join block"), std::string::npos);
  EXPECT_TRUE(asked("divergent-branch", job).empty());
  EXPECT_TRUE(asked("mismatched-op", job).empty());
}

TEST(JoinShadow, TurnsToThoseWhoAreOutOfData) {
  JobBuilder builder = job();
  builder.ranks(3)
      .source(kTrain, kSource)
      .stack(kAll, shadows(at("main", "    with model.join")))
      .stack(2, kOwn);
  const Findings findings = asked("uneven-inputs", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].culprits, (model::RankSet{0, 1}));
}

TEST(JoinShadow, AnswersForABackward) {
  for (const Finding& finding :
       asked("uneven-inputs", told(in_backward(at("main", "backward()"))).build())) {
    EXPECT_EQ(finding.summary.find("Join"), std::string::npos);
  }
}

TEST(JoinShadow, SaysNothingOfACallBehindIt) {
  for (const Finding& finding :
       asked("uneven-inputs", told(in("barrier", at("main", "barrier"))).build())) {
    EXPECT_EQ(finding.summary.find("Join"), std::string::npos);
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
