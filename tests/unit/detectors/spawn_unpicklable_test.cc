// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/exception_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "spawn-unpicklable";
constexpr std::string_view kMessage =
    R"log(AttributeError: Can't pickle local object 'main.<locals>.run')log";

TEST(SpawnUnpicklable, ReadsTheMessageTheRankAndTheLine) {
  expect_rank_and_line(kKind, kMessage);
}

TEST(SpawnUnpicklable, IsSilentOnOtherMessages) {
  expect_silence_on_other_messages(kKind);
}

TEST(SpawnUnpicklable, OnlySuspectsAMessageThatTheJobSurvived) {
  expect_doubt_when_survived(kKind, kMessage);
}

}  // namespace
}  // namespace ddpdoctor::detectors
