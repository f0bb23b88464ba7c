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

// torch lists the missing keys and the unexpected ones: one of the two lists has the prefix.
TEST(StateDictPrefix, TellsWhichOfTheTwoListsHasThePrefix) {
  const auto told = [](const std::string& missing, const std::string& unexpected, char between) {
    tests::JobBuilder builder = tests::job();
    builder.ranks(2).exited(tests::kAll, 1);
    const std::string message =
        "RuntimeError: Error(s) in loading state_dict for Net:" + std::string(1, between) +
        "Missing key(s) in state_dict: \"" + missing + "\"." + std::string(1, between) +
        "Unexpected key(s) in state_dict: \"" + unexpected + "\".";
    std::string first = traceback_ending(message);
    for (std::size_t at = first.find("[rank1]"); at != first.npos; at = first.find("[rank1]")) {
      first.replace(at, 7, "[rank0]");
    }
    builder.log(0, first).log(1, traceback_ending(message));
    return asked(kKind, builder.build());
  };
  for (const char between : {'\n', ' '}) {
    const Findings wrapped = told("a.weight", "module.a.weight", between);
    ASSERT_EQ(wrapped.size(), 1U) << essence(wrapped);
    EXPECT_NE(wrapped[0].summary.find("loaded a checkpoint of the wrapped model"),
              std::string::npos)
        << wrapped[0].summary;
    const Findings bare = told("module.a.weight", "a.weight", between);
    ASSERT_EQ(bare.size(), 1U) << essence(bare);
    EXPECT_NE(bare[0].summary.find("checkpoint of the unwrapped model"), std::string::npos);
  }
}

}  // namespace
}  // namespace ddpdoctor::detectors
