// SPDX-License-Identifier: Apache-2.0
// The classes of objects whose methods a running function calls, over every interpreter found.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/places.h"
#include "tests/unit/values/of_program.h"

namespace ddpdoctor::values {
namespace {

const std::string kProgram = tests::source_file("tests/support/python_objects.py");

std::vector<CalledObject> objects_of(const std::string& python) {
  test::ChildProcess child({python, kProgram}, true);
  if (!child.lines_until("ready")) {
    return {};
  }
  Observer observer(std::chrono::seconds(10));
  std::vector<CalledObject> objects;
  const std::array<pid_t, 1> pids{child.pid()};
  stacks::capture(pids, {.native = false, .visitor = [&](stacks::PythonVisit& visit) {
                           objects = observer.objects(visit);
                         }});
  return objects;
}

class Objects : public testing::TestWithParam<int> {};

TEST_P(Objects, AreOfTheClassesThatTheProgramSays) {
  const auto installations = test::python_installations(GetParam());
  if (installations.empty()) {
    GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
  }
  for (const test::PythonInstallation& python : installations) {
    const std::vector<CalledObject> objects = objects_of(python.command);
    ASSERT_FALSE(objects.empty()) << python.command;
    std::vector<std::size_t> queues;
    for (const auto& [line, text] : expected_of(kProgram, GetParam())) {
      const auto found = std::find_if(objects.begin(), objects.end(),
                                      [at = line](const auto& one) { return one.line == at; });
      EXPECT_EQ(found == objects.end() ? "nothing" : found->qualified, text)
          << "line " << line << " in " << python.command;
      if (found != objects.end() && text == "queue.Queue") {
        queues.push_back(found->number);
      }
    }
    ASSERT_EQ(queues.size(), 2u) << python.command;
    EXPECT_EQ(queues[0], queues[1]) << python.command;
  }
}

INSTANTIATE_TEST_SUITE_P(Python3, Objects, testing::Range(8, 15));

}  // namespace
}  // namespace ddpdoctor::values
