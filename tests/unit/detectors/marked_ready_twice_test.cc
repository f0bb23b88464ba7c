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

constexpr std::string_view kNet = R"(
class Net(nn.Module):
    def forward(self, x):
        x = self.first(x)
        x = checkpoint(self.block,
                       x)
        return self.head(x)

def main():
    loss.backward()
)";

std::string traceback(const std::string& message) {
  return R"log(Traceback (most recent call last):
  File "/srv/train.py", line 9, in main
    loss.backward()
RuntimeError: Expected to mark a variable ready only once. )log" +
         message;
}

Findings told(std::string_view net, const std::string& message) {
  return asked(kKind, tests::job()
                          .ranks(1)
                          .source("/srv/train.py", net)
                          .log(0, traceback(message))
                          .ended()
                          .build());
}

std::string replaced(std::string_view part, std::string_view by) {
  std::string text(kNet);
  return text.replace(text.find(part), part.size(), by);
}

TEST(MarkedReadyTwice, NamesTheReentrantCheckpointAndNotOnlyBackward) {
  const auto findings = told(kNet, "");
  ASSERT_EQ(findings.size(), 1u);
  ASSERT_GE(findings[0].locations.size(), 2u);
  EXPECT_EQ(findings[0].locations[0].line, 4);
  EXPECT_EQ(findings[0].locations[1].line, 9);
  EXPECT_NE(findings[0].fix.find("use_reentrant=False to checkpoint (train.py:4)"),
            std::string::npos);
}

TEST(MarkedReadyTwice, NamesTheModuleThatOneForwardCallsTwice) {
  const auto findings = told(
      replaced("x = checkpoint(self.block,\n                       x)", "x = self.head(x)"), "");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].summary.find("`self.head` is called 2 times"), std::string::npos)
      << findings[0].summary;
}

TEST(MarkedReadyTwice, KeepsToBackwardWhereTheSourceShowsNothing) {
  const auto findings = told(
      replaced("                       x)", "                       x, use_reentrant=False)"), "");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.at(0).line, 9);
}

TEST(MarkedReadyTwice, TakesTheParameterFromTheMessage) {
  const auto findings =
      told(replaced("self.first(x)", "self.first(self.first(x))") + "\n",
           "Parameter at index 2 with name other.weight has been marked as ready twice.");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].locations.at(0).line, 4);
}

}  // namespace
}  // namespace ddpdoctor::detectors
