// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/diagnosis/diagnosis.h"
#include "tests/support/job_builder.h"

namespace ddpdoctor::diagnosis {
namespace {

using namespace ddpdoctor::tests;

const std::string kInGloo =
    "native:__futex_abstimed_wait_common | native:c10d::ProcessGroupGloo::AsyncWork::wait | "
    "native:_PyEval_EvalFrameDefault | native:main";

JobBuilder without_python(const std::string& odd) {
  return job().ranks(3).stack(kAll, kInGloo).stack(1, odd);
}

TEST(NativePlace, IsTheFunctionThatSaysWhatIsWaitedFor) {
  const Diagnosis found =
      diagnose(without_python("native:futex_wait | native:pthread_cond_wait | native:read_shards | "
                              "native:_PyEval_EvalFrameDefault | native:main")
                   .build());
  ASSERT_FALSE(found.findings.empty());
  ASSERT_EQ(found.findings[0].locations.size(), 1U);
  EXPECT_EQ(found.findings[0].locations[0].function, "read_shards");
  EXPECT_EQ(found.findings[0].locations[0].rank, 1);
  EXPECT_NE(found.findings[0].fix.find("py-spy dump --native"), std::string::npos);
}

TEST(NativePlace, IsTheWaitItselfWhereOnlyTheInterpreterLiesBelow) {
  const Diagnosis found = diagnose(
      without_python("native:epoll_wait | native:_PyEval_EvalFrameDefault | native:main").build());
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].locations.at(0).function, "epoll_wait");
}

TEST(NativePlace, IsNoWaitOfTheStandardLibrary) {
  const Diagnosis found = diagnose(
      without_python("native:futex_wait | native:std::thread::join | native:Reader::~Reader | "
                     "native:subtype_dealloc | native:_PyEval_EvalFrameDefault | native:main")
          .build());
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].locations.at(0).function, "Reader::~Reader");
}

TEST(NativePlace, LeavesFindingsWithALineAlone) {
  const Diagnosis found = diagnose(
      without_python("native:read_shards | py:load@/srv/train.py:9 | native:main").build());
  ASSERT_FALSE(found.findings.empty());
  EXPECT_EQ(found.findings[0].locations.at(0).line, 9);
  EXPECT_EQ(found.findings[0].fix.find("py-spy"), std::string::npos);
}

}  // namespace
}  // namespace ddpdoctor::diagnosis
