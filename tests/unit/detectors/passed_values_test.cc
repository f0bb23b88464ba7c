// SPDX-License-Identifier: Apache-2.0
// A rank check whose result a caller passes on.
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kTimer = R"(
def section(name, fence=False):
    if fence:
        dist.barrier()
)";

/// Rank 0 is in the barrier of section(), rank 1 in the backward after the call.
model::JobModel told(const std::string& argument) {
  const std::string main =
      "def main():\n    for x in loader:\n        section('a', fence=" + argument +
      ")\n        loss(x).backward()\n";
  JobBuilder builder = job();
  builder.ranks(3)
      .source("/srv/timer.py", kTimer)
      .source("/srv/train.py", main)
      .stack(0, in("barrier", "py:section@/srv/timer.py:3 | py:main@/srv/train.py:3"))
      .stack({1, 2}, in_backward("py:main@/srv/train.py:4"));
  return builder.build();
}

TEST(PassedValues, OfATestOfTheRankMakeTheConditionOne) {
  const auto findings = asked("rank-conditional-collective", told("dist.get_rank() == 0"));
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  EXPECT_NE(findings[0].fix.find("fence"), std::string::npos);
}

TEST(PassedValues, OfDataLeaveItData) {
  EXPECT_TRUE(asked("rank-conditional-collective", told("loss > best")).empty());
  EXPECT_EQ(asked("divergent-branch", told("loss > best")).size(), 1u);
}

/// Rank 0 is in the broadcast under the property, rank 1 after it.
model::JobModel asks(const std::string& answer) {
  const std::string world =
      "class World:\n    @property\n    def chief(self):\n        " + answer + "\n";
  JobBuilder builder = job();
  builder.ranks(3)
      .source("/srv/world.py", world)
      .source("/srv/train.py",
              "def main(w):\n    for x in loader:\n        if verbose and w.chief:\n            "
              "dist.barrier()\n        loss(x).backward()\n")
      .stack(0, in("barrier", "py:main@/srv/train.py:4"))
      .stack({1, 2}, in_backward("py:main@/srv/train.py:5"));
  return builder.build();
}

TEST(PassedValues, APropertyThatTestsTheRankMakesTheConditionOne) {
  for (const std::string answer : {"return not dist.get_rank()", "return dist.get_rank() == 0"}) {
    const auto findings = asked("rank-conditional-collective", asks(answer));
    ASSERT_EQ(findings.size(), 1u) << answer;
    EXPECT_EQ(findings[0].culprits, model::RankSet({0}));
  }
}

TEST(PassedValues, APropertyOfDataLeavesItData) {
  EXPECT_TRUE(asked("rank-conditional-collective", asks("return self.loss > 3")).empty());
}

}  // namespace
}  // namespace ddpdoctor::detectors
