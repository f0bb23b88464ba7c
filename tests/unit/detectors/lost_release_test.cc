// SPDX-License-Identifier: Apache-2.0
#include "collector/detectors/evidence/lost_release.h"

#include <gtest/gtest.h>

#include "tests/support/job_builder.h"

namespace ddpdoctor::detectors {
namespace {

std::optional<int> left(const std::string& between) {
  const auto told =
      tests::job()
          .source("/srv/cache.py", "def load(self, key):\n    self.guard.acquire()\n" + between +
                                       "    self.guard.release()\n")
          .build();
  return leaves_without_release(told.sources.at("/srv/cache.py"), "self.guard");
}

TEST(LostRelease, FindsTheReturnBetweenAcquireAndRelease) {
  EXPECT_EQ(left("    if not key:\n        return None\n"), 4);
  EXPECT_EQ(left("    if not key:\n        raise KeyError(key)\n"), 4);
}

TEST(LostRelease, IsSilentWhereEachWayOutReleases) {
  EXPECT_EQ(left("    self.items[key] = key\n"), std::nullopt);
  EXPECT_EQ(left("    if not key:\n        self.guard.release()\n        return None\n"),
            std::nullopt);
  EXPECT_EQ(left("    try:\n        return self.items[key]\n    finally:\n    "), std::nullopt);
}

}  // namespace
}  // namespace ddpdoctor::detectors
