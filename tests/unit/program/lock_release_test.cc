// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/lock_release.h"

#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

std::optional<int> in_file(const std::string& python) {
  const Sources sources{{"/srv/cache.py", source(python)}};
  return leaves_without_release(sources.at("/srv/cache.py"), sources, "self.guard");
}

std::optional<int> left(const std::string& between, const std::string& before = {}) {
  return in_file("def load(self, key):\n" + before + "    self.guard.acquire()\n" + between +
                 "    self.guard.release()\n");
}

TEST(LockRelease, FindsTheReturnBetweenAcquireAndRelease) {
  EXPECT_EQ(left("    if not key:\n        return None\n"), 4);
  EXPECT_EQ(left("    if not key:\n        raise KeyError(key)\n"), 4);
  EXPECT_EQ(left("    try:\n        work()\n    except OSError:\n        return None\n"), 6);
  EXPECT_EQ(left("    while key:\n        if not work():\n            return None\n"), 5);
}

TEST(LockRelease, IsSilentWhereEachWayOutReleases) {
  EXPECT_EQ(left("    self.items[key] = key\n"), std::nullopt);
  EXPECT_EQ(left("    if not key:\n        self.guard.release()\n        return None\n"),
            std::nullopt);
  EXPECT_EQ(left("    try:\n        return self.items[key]\n    finally:\n    "), std::nullopt);
  EXPECT_EQ(left("    try:\n        work()\n    except OSError:\n        self.guard.release()\n"
                 "        raise\n"),
            std::nullopt);
}

TEST(LockRelease, FollowsTheFlowAndNotTheOrderOfLines) {
  // The branch that returns never took the lock.
  EXPECT_EQ(in_file("def load(self, key):\n    if key:\n        self.guard.acquire()\n"
                    "    else:\n        return None\n    work()\n    self.guard.release()\n"),
            std::nullopt);
  EXPECT_EQ(in_file("def load(self, key):\n    if key:\n        self.guard.acquire()\n    work()\n"
                    "    if key:\n        self.guard.release()\n    return 1\n"),
            std::nullopt);
  // The release of one branch does not serve another.
  EXPECT_EQ(in_file("def load(self, key):\n    self.guard.acquire()\n    if key:\n"
                    "        self.guard.release()\n        return 1\n    elif key is None:\n"
                    "        return 2\n    self.guard.release()\n"),
            7);
  EXPECT_EQ(in_file("def load(self, key):\n    if not self.guard.acquire(timeout=1):\n"
                    "        return None\n    work()\n    self.guard.release()\n"),
            std::nullopt);
}

TEST(LockRelease, AMethodThatReleasesCounts) {
  EXPECT_EQ(in_file("class C:\n    def load(self, key):\n        self.guard.acquire()\n"
                    "        if not key:\n            self.leave()\n            return None\n"
                    "        self.guard.release()\n    def leave(self):\n"
                    "        self.guard.release()\n    def __init__(self):\n"
                    "        self.guard = threading.Lock()\nimport threading\n"),
            std::nullopt);
}

}  // namespace
}  // namespace ddpdoctor::program
