// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/exception_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "marked-ready-twice";
constexpr std::string_view kMessage =
    R"log(RuntimeError: Expected to mark a variable ready only once. This error is caused by)log";

TEST(MarkedReadyTwice, ReadsTheMessageTheRankAndTheLine) {
  expect_rank_and_line(kKind, kMessage);
}

TEST(MarkedReadyTwice, IsSilentOnOtherMessages) {
  expect_silence_on_other_messages(kKind);
}

TEST(MarkedReadyTwice, OnlySuspectsAMessageThatTheJobSurvived) {
  expect_doubt_when_survived(kKind, kMessage);
}

}  // namespace
}  // namespace ddpdoctor::detectors
