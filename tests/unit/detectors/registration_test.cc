// SPDX-License-Identifier: Apache-2.0
// An object whose class runs a collective is made on some ranks only.
#include "tests/unit/detectors/collective_stories.h"

namespace ddpdoctor::detectors {
namespace {

TEST(Registration, NamesTheFirstOfSeveralPlacesUnderATestOfTheRank) {
  const std::string file = "/srv/train.py";
  JobBuilder builder = job();
  builder.ranks(3)
      .source(file,
              "class Norms:\n    def show(self, net):\n        print(total_norm(net))\n"
              "def made(out):\n    if dist.get_rank() == 0:\n        return Norms(out)\n"
              "    return Norms(None) if dist.get_rank() == 0 and out else Plain()\n"
              "def main():\n    for x in data:\n        step(x)\n        norms.show(net)\n")
      .stack(kAll, in("all_gather", "py:main@" + file + ":10"))
      .stack(0, in("all_reduce", "py:Norms.show@" + file + ":3 | py:main@" + file + ":11"));
  const Findings findings = asked("rank-conditional-collective", builder.build());
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].summary.find("`if dist.get_rank() == 0`"), std::string::npos)
      << findings[0].summary;
  EXPECT_EQ(findings[0].locations.back().line, 5);
  EXPECT_EQ(findings[0].locations.back().file, file);
}

}  // namespace
}  // namespace ddpdoctor::detectors
