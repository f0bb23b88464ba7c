// SPDX-License-Identifier: Apache-2.0
// A context of the program's own around a lock is that lock, for every interpreter found.
#include "collector/values/lock_reader.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collector/stacks/capture.h"
#include "collector/values/observe.h"
#include "tests/support/child_process.h"
#include "tests/support/places.h"

namespace ddpdoctor::values {
namespace {

std::vector<SeenLock> locks_of(const std::string& python) {
  test::ChildProcess child({python, tests::source_file("tests/support/python_locks.py")}, true);
  if (!child.lines_until("ready")) {
    return {};
  }
  Observer observer(std::chrono::seconds(10));
  std::vector<SeenLock> locks;
  const std::array<pid_t, 1> pids{child.pid()};
  stacks::capture(pids, {.native = false, .visitor = [&](stacks::PythonVisit& visit) {
                           locks = observer.locks(visit);
                         }});
  return locks;
}

class Locks : public testing::TestWithParam<int> {};

TEST_P(Locks, BehindContextsAreTheLockThatIsAcquired) {
  const auto installations = test::python_installations(GetParam());
  if (installations.empty()) {
    GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
  }
  for (const test::PythonInstallation& python : installations) {
    const std::vector<SeenLock> locks = locks_of(python.command);
    const auto number_of = [&locks](const std::string& expression) -> std::size_t {
      const auto found = std::find_if(locks.begin(), locks.end(), [&](const SeenLock& one) {
        return one.expression == expression;
      });
      return found == locks.end() ? 0 : found->lock;
    };
    EXPECT_NE(number_of("first.opened()"), 0u) << python.command;
    EXPECT_EQ(number_of("first.opened()"), number_of("first")) << python.command;
    EXPECT_EQ(number_of("self.guard"), number_of("first")) << "wanted in " << python.command;
    EXPECT_EQ(number_of("table"), number_of("first")) << python.command;
    EXPECT_NE(number_of("other"), 0u) << python.command;
    EXPECT_NE(number_of("other"), number_of("first")) << python.command;
    EXPECT_EQ(number_of("first.timed()"), 0u) << python.command;
    // Its owner entered it three times; the thread that wants it is a different one.
    const auto find = [&locks](const std::string& expression) {
      return std::find_if(locks.begin(), locks.end(),
                          [&](const SeenLock& one) { return one.expression == expression; });
    };
    const auto owned = find("first");
    const auto wanted = find("table");
    const auto held = find("other");
    ASSERT_TRUE(owned != locks.end() && wanted != locks.end() && held != locks.end());
    EXPECT_EQ(owned->owner, owned->tid) << python.command;
    EXPECT_EQ(owned->count, 2) << python.command;
    EXPECT_EQ(wanted->owner, owned->tid) << python.command;
    EXPECT_NE(wanted->owner, wanted->tid) << python.command;
    EXPECT_EQ(held->owner, held->tid) << python.command;
    EXPECT_EQ(held->count, 1) << python.command;
    // The contexts that no name refers to, up to 3.13: two, one in an ExitStack with another one.
    const auto count_of = [&locks](const std::string& expression) {
      std::set<std::size_t> numbers;
      for (const SeenLock& one : locks) {
        if (one.expression == expression) {
          numbers.insert(one.lock);
        }
      }
      return numbers.size();
    };
    if (GetParam() < 14) {
      EXPECT_EQ(count_of("Guarded(third)"), 1u) << python.command;
      EXPECT_EQ(count_of("contextlib.ExitStack()"), 2u) << python.command;
      EXPECT_NE(number_of("contextlib.ExitStack()"), number_of("Guarded(third)")) << python.command;
      EXPECT_NE(number_of("plain"), 0u) << python.command;
    }
    const auto free = find("returned");
    ASSERT_NE(free, locks.end()) << python.command;
    EXPECT_EQ(free->owner, 0) << python.command;
  }
}

INSTANTIATE_TEST_SUITE_P(Python3, Locks, testing::Range(8, 15));

}  // namespace
}  // namespace ddpdoctor::values
