// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "collector/diagnosis/diagnosis.h"
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::diagnosis {
namespace {

using namespace ddpdoctor::tests;
using detectors::kTrain;

constexpr const char* kSource = R"(
def mean(value):
    dist.all_reduce(value)

def train():
    mean(loss)
    mean(accuracy)
)";

bool names_line(const detectors::Finding& finding, int line) {
  return std::any_of(finding.locations.begin(), finding.locations.end(),
                     [line](const auto& one) { return one.line == line; });
}

TEST(DecidingCallers, OfAFunctionThatOnlyPassesOnAreNamed) {
  JobBuilder builder = job();
  builder.ranks(3).source(kTrain, kSource);
  builder.stack({0, 2}, detectors::in("all_reduce", detectors::at("mean", "all_reduce") + " | " +
                                                        detectors::at("train", "mean(loss)")));
  builder.stack(1, "native:clock_nanosleep | native:time_sleep | " +
                       detectors::at("train", "mean(accuracy)"));
  const model::JobModel told = builder.build();
  const Diagnosis diagnosis = diagnose(told);
  ASSERT_FALSE(diagnosis.findings.empty());
  const detectors::Finding& first = diagnosis.findings.front();
  EXPECT_EQ(first.kind, "missing-rank");
  EXPECT_TRUE(names_line(first, 2));  // in mean(), for any caller
  EXPECT_TRUE(names_line(first, 5));
}

}  // namespace
}  // namespace ddpdoctor::diagnosis
