// SPDX-License-Identifier: Apache-2.0
// Messages after which the job continued.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/diagnosis/diagnosis.h"

namespace ddpdoctor::diagnosis {
namespace {

constexpr const char* kMessage =
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=7123.0. Some of your processes may "
    "have been killed by the cgroup out-of-memory handler.\n";

detectors::Confidence confidence_with(const std::string& below) {
  model::JobModel job;
  job.logs.push_back({.rank = {}, .text = kMessage + below});
  const Diagnosis diagnosis = diagnose(job);
  EXPECT_FALSE(diagnosis.findings.empty());
  return diagnosis.findings.empty() ? detectors::Confidence::kPossible
                                    : diagnosis.findings.front().confidence;
}

std::string lines(const std::string& pattern, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format(fmt::runtime(pattern), i, 2.5 - 0.1 * i) + "\n";
  }
  return out;
}

TEST(Overcome, StepsAfterAMessageLeaveItPossible) {
  EXPECT_EQ(confidence_with(lines("step {}: loss {:.2f}", 8)), detectors::Confidence::kPossible);
  EXPECT_EQ(confidence_with(lines("[rank1]: epoch 3 batch {}/90 val_error {:.2f}", 8)),
            detectors::Confidence::kPossible);
}

TEST(Overcome, OtherLinesAreNoSteps) {
  EXPECT_EQ(confidence_with(""), detectors::Confidence::kLikely);
  EXPECT_EQ(confidence_with(lines("step {}: loss {:.2f}", 3)), detectors::Confidence::kLikely);
  EXPECT_EQ(
      confidence_with(lines("W0817 17:40:5{}.407000 22745651681088 api.py:858] Sending process "
                            "183410 closing signal {:.0f}",
                            8)),
      detectors::Confidence::kLikely);
  EXPECT_EQ(confidence_with(lines("still waiting after {}0 s", 8)), detectors::Confidence::kLikely);
  EXPECT_EQ(confidence_with(lines("frame #{}: main + 0x{:.0f}", 8)),
            detectors::Confidence::kLikely);
}

TEST(Overcome, TheLastQuotedLineCounts) {
  EXPECT_EQ(confidence_with(lines("step {}: loss {:.2f}", 8) + kMessage),
            detectors::Confidence::kLikely);
}

}  // namespace
}  // namespace ddpdoctor::diagnosis
