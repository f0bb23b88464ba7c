// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/exception_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "buffers-inplace";
constexpr std::string_view kMessage =
    R"log(RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation)log";

TEST(BuffersInplace, ReadsTheMessageTheRankAndTheLine) {
  expect_rank_and_line(kKind, kMessage);
}

TEST(BuffersInplace, IsSilentOnOtherMessages) {
  expect_silence_on_other_messages(kKind);
}

TEST(BuffersInplace, OnlySuspectsAMessageThatTheJobSurvived) {
  expect_doubt_when_survived(kKind, kMessage);
}

}  // namespace
}  // namespace ddpdoctor::detectors
