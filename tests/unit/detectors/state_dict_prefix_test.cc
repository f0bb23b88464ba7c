// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/exception_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kKind = "state-dict-prefix";
constexpr std::string_view kMessage =
    R"log(RuntimeError: Error(s) in loading state_dict for Net: Unexpected key(s) in state_dict: "module.weight")log";

TEST(StateDictPrefix, ReadsTheMessageTheRankAndTheLine) {
  expect_rank_and_line(kKind, kMessage);
}

TEST(StateDictPrefix, IsSilentOnOtherMessages) {
  expect_silence_on_other_messages(kKind);
}

TEST(StateDictPrefix, OnlySuspectsAMessageThatTheJobSurvived) {
  expect_doubt_when_survived(kKind, kMessage);
}

}  // namespace
}  // namespace ddpdoctor::detectors
