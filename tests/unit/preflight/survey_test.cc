// SPDX-License-Identifier: Apache-2.0
#include "collector/preflight/survey.h"

#include <array>
#include <csignal>
#include <set>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/unit/preflight/asked.h"

namespace ddpdoctor::preflight {
namespace {

constexpr std::chrono::milliseconds kLong{20000};

Remarks answer(const Setting& /*setting*/) {
  return {{.level = Level::kBreaks, .what = "a\x1f\x1e\nb", .fix = "c"},
          {.level = Level::kOk, .what = "fine", .fix = {}}};
}

Remarks never(const Setting& /*setting*/) {
  while (true) {
    ::pause();
  }
}

Remarks crash(const Setting& /*setting*/) {
  ::raise(SIGKILL);
  return {};
}

constexpr Check kAnswers{.name = "answers", .title = "", .look = answer};
constexpr Check kNever{.name = "never", .title = "", .look = never};
constexpr Check kCrashes{.name = "crashes", .title = "", .look = crash};

TEST(Survey, AnswersStandInTheOrderOfTheQuestions) {
  constexpr std::array<const Check*, 2> kAsked{&kCrashes, &kAnswers};
  const auto answers = survey(kAsked, {}, kLong);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].check, &kCrashes);
  EXPECT_EQ(worst(answers[0].remarks), Level::kUnknown);
  ASSERT_EQ(answers[1].remarks.size(), 2U);
  EXPECT_EQ(answers[1].remarks[0].fix, "c");
  EXPECT_EQ(answers[1].remarks[1].what, "fine");
  EXPECT_TRUE(will_break(answers));
}

TEST(Survey, TextThatLooksLikeItsOwnMarksIsEscaped) {
  constexpr std::array<const Check*, 1> kAsked{&kAnswers};
  const auto answers = survey(kAsked, {}, kLong);
  const std::string& what = answers.front().remarks.front().what;
  EXPECT_TRUE(what.starts_with("a") && what.ends_with("b")) << what;
  EXPECT_EQ(what.find('\x1e'), std::string::npos);
}

TEST(Survey, ACheckThatNeverAnswersIsUnknownAndNoReproach) {
  constexpr std::array<const Check*, 1> kAsked{&kNever};
  const auto answers = survey(kAsked, {}, std::chrono::milliseconds(50));
  ASSERT_EQ(answers.front().remarks.size(), 1U);
  EXPECT_EQ(answers.front().remarks.front().level, Level::kUnknown);
  EXPECT_FALSE(will_break(answers));
}

TEST(Checks, HaveNamesOfTheirOwnAndATitle) {
  std::set<std::string_view> names;
  for (const Check* check : checks()) {
    EXPECT_TRUE(names.insert(check->name).second) << check->name;
    EXPECT_FALSE(check->title.empty()) << check->name;
  }
  EXPECT_GE(names.size(), 15U);
}

TEST(Checks, SurviveAMachineOfWhichNothingCanBeRead) {
  const Machine nothing;
  for (const Check* check : checks()) {
    expect_fixes(check->look(nothing.setting));
  }
}

}  // namespace
}  // namespace ddpdoctor::preflight
