// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/detectors/asked.h"

namespace ddpdoctor::detectors {
namespace {

using namespace ddpdoctor::tests;

std::vector<Location> lines_of(const std::string& below) {
  const auto findings = asked(
      "rank-raised",
      job()
          .ranks(2)
          .exited(kAll, 1)
          .ended()
          .log(
              1,
              "Traceback (most recent call last):\n  File \"/srv/train.py\", line 126, in train\n" +
                  below + "FileNotFoundError: 'tmp-checkpoint-49'\n")
          .build());
  return findings.empty() ? std::vector<Location>() : findings.front().locations;
}

TEST(RaisedLines, TheLineOfALibraryComesBelowTheUsers) {
  const auto all = lines_of(
      "  File \"/opt/lib/python3.9/site-packages/transformers/trainer.py\", line 2395, in "
      "_save_checkpoint\n");
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].line, 126);
  EXPECT_EQ(all[1].line, 2395);
  EXPECT_EQ(all[1].function, "_save_checkpoint");
}

TEST(RaisedLines, TheUsersOwnLineComesOnce) {
  EXPECT_EQ(lines_of("").size(), 1U);
}

}  // namespace
}  // namespace ddpdoctor::detectors
