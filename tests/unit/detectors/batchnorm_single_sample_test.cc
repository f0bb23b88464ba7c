// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/exception_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "batchnorm-single-sample";
constexpr std::string_view kMessage =
    R"log(ValueError: Expected more than 1 value per channel when training, got input size torch.Size([1, 8]))log";

TEST(BatchnormSingleSample, ReadsTheMessageTheRankAndTheLine) {
  expect_rank_and_line(kKind, kMessage);
}

TEST(BatchnormSingleSample, IsSilentOnOtherMessages) {
  expect_silence_on_other_messages(kKind);
}

TEST(BatchnormSingleSample, OnlySuspectsAMessageThatTheJobSurvived) {
  expect_doubt_when_survived(kKind, kMessage);
}

}  // namespace
}  // namespace ddpdoctor::detectors
