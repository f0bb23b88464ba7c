// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/feedback.h"
#include "tests/unit/program/lines_of.h"

namespace ddpdoctor::program {
namespace {

/// The header of the loop that feeds the call on the line marked HERE; empty if there is none.
std::string fed(const char* source) {
  const Lines lines = lines_of(source);
  const auto loop = feedback_loop(lines, line_with(lines, "HERE"));
  return loop ? loop->text : "";
}

TEST(FeedbackLoop, GivesACallItsOwnResult) {
  EXPECT_EQ(fed("def f(model, ids):\n  while not over(ids):\n    ids = model(ids)  # HERE\n"),
            "while not over(ids)");
}

TEST(FeedbackLoop, IsFollowedOverNamesAndMethods) {
  EXPECT_EQ(fed(R"(
def unroll(self, prompt):
    seen = [prompt]
    for _ in range(self.most):
        scores = self.net(torch.cat(seen, -1))  # HERE
        token = scores[:, -1].argmax(-1)
        seen.append(token)
        if (token == self.last).all():
            break
    return seen
)"),
            "for _ in range(self.most)");
}

TEST(FeedbackLoop, IsNoneWhereDataComesFromElsewhere) {
  EXPECT_EQ(fed("for x in data:\n  loss = model(x)  # HERE\n  if loss < best:\n    break\n"), "");
}

TEST(FeedbackLoop, IsNoneWhereNoTestEndsIt) {
  EXPECT_EQ(fed("def forward(self, x):\n  for layer in self.layers:\n    x = layer(x)  # HERE\n"),
            "");
  EXPECT_EQ(fed("while True:\n  x = f(x)  # HERE\n"), "");
}

TEST(FeedbackLoop, IsNoneOfCallsThatDifferInEachIteration) {
  EXPECT_EQ(fed("for layer in layers:\n  x = layer(x)  # HERE\n  if x.min() > sure:\n    break\n"),
            "");
}

TEST(FeedbackLoop, IsNoneOutsideOfALoop) {
  EXPECT_EQ(fed("x = f(x)  # HERE\n"), "");
}

}  // namespace
}  // namespace ddpdoctor::program
