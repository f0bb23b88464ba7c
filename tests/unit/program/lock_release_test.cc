// SPDX-License-Identifier: Apache-2.0
#include "collector/program/questions/lock_release.h"

#include <algorithm>

#include "tests/unit/program/source.h"

namespace ddpdoctor::program {
namespace {

/// The lock is the object of the first acquire.
std::optional<int> in_file(const std::string& python, const std::string& name = "self.guard") {
  const Sources sources{{"/srv/cache.py", source(python)}};
  const SourceText& text = sources.at("/srv/cache.py");
  const auto waits = std::find_if(text.begin(), text.end(), [&name](const auto& line) {
    return line.second.find(name + ".acquire(") != std::string::npos;
  });
  return leaves_without_release(text, sources, {.line = waits->first, .name = name});
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

TEST(LockRelease, ASecondTestOfTheSameConditionIsTheSameDecision) {
  const auto tested = [](const std::string& first, const std::string& between,
                         const std::string& second) {
    return in_file("def load(self, key):\n    if " + first + ":\n        self.guard.acquire()\n" +
                   between + "    if " + second +
                   ":\n        self.guard.release()\n    return 1\n");
  };
  EXPECT_EQ(tested("key is None", "    work()\n", "not key is not None"), std::nullopt);
  EXPECT_EQ(tested("(key)", "", "not (not key)"), std::nullopt);
  // The second test has another value to judge.
  EXPECT_EQ(tested("key", "    key = work()\n", "key"), 7);
  EXPECT_EQ(tested("key", "", "not key"), 6);
}

TEST(LockRelease, ComparesLocksAsObjects) {
  const std::string two =
      "import threading\nclass Store:\n    def __init__(self):\n"
      "        self.guard = threading.Lock()\n        self.side = threading.Lock()\n"
      "    def load(self, key, peer):\n        self.guard.acquire()\n";
  const std::string back = "        self.guard.release()\n";
  // An alias is the lock.
  EXPECT_EQ(in_file(two +
                    "        guard = self.guard\n        if not key:\n"
                    "            guard.release()\n            return None\n" +
                    back),
            std::nullopt);
  // A lock of the same name that another constructor call made is not.
  EXPECT_EQ(in_file(two +
                    "        if not key:\n            self.side.release()\n"
                    "            return None\n" +
                    back),
            10);
  EXPECT_EQ(in_file(two +
                    "        guard = self.side\n        if not key:\n"
                    "            guard.release()\n            return None\n" +
                    back),
            11);
  // What a caller passes may be the lock: nothing is said.
  EXPECT_EQ(in_file(two +
                    "        if not key:\n            peer.release()\n"
                    "            return None\n" +
                    back),
            std::nullopt);
}

TEST(LockRelease, AnEqualSpellingInAnotherClassIsAnotherLock) {
  EXPECT_EQ(in_file("import threading\nclass A:\n    def __init__(self):\n"
                    "        self.guard = threading.Lock()\n    def load(self, key):\n"
                    "        self.guard.acquire()\n        work()\n        self.guard.release()\n"
                    "class B:\n    def __init__(self):\n        self.guard = threading.Lock()\n"
                    "    def load(self, key):\n        self.guard.acquire()\n"
                    "        if not key:\n            return None\n"
                    "        self.guard.release()\n"),
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
