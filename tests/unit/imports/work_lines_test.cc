// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "collector/model/questions.h"
#include "tests/unit/imports/read_text.h"

namespace ddpdoctor::imports {
namespace {

std::string step(int number, const std::string& loss) {
  return "eval, step " + std::to_string(number) + ", loss " + loss + "\n";
}

const std::string kTimeout = "[rank1]: RuntimeError: Socket Timeout\n";

std::size_t moved(const std::string& log) {
  return model::facts(read_log(log), "progress-line").size();
}

TEST(WorkLines, StepsThatContinueAfterATimeoutAreWork) {
  const std::string before = step(7, "0.5") + step(8, "0.4") + step(9, "0.6");
  EXPECT_EQ(moved(before + kTimeout + step(10, "0.3")), 1U);
  EXPECT_EQ(moved(before + step(10, "0.3") + kTimeout), 0U);
  EXPECT_EQ(moved(before + step(10, "0.3")), 0U);
}

TEST(WorkLines, ARepeatedMessageOfAWaitIsNotWork) {
  std::string waits;
  for (int i = 1; i < 9; ++i) {
    waits +=
        "still waiting, attempt " + std::to_string(i) + " after " + std::to_string(i) + ".5 s\n";
    waits += i == 4 ? kTimeout : "";
  }
  EXPECT_EQ(moved(waits), 0U);
}

TEST(WorkLines, KeepsTheLastMessageBeforeTheTimeoutAndWhatWasAnnounced) {
  const auto job = read_log("INFO:Saving. This may take some time.\ntook 114.7 secs\n" + kTimeout +
                            "Sending process 7 closing signal\n");
  const auto announced = model::facts(job, "announced-work");
  ASSERT_EQ(announced.size(), 1U);
  EXPECT_EQ(announced[0]->text("text"), "INFO:Saving. This may take some time.");
  const auto last = model::facts(job, "last-message");
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0]->text("text"), "took 114.7 secs");
}

}  // namespace
}  // namespace ddpdoctor::imports
