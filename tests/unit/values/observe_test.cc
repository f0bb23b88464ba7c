// SPDX-License-Identifier: Apache-2.0
// Decisions of a blocked program, for every interpreter found: the program has the expected value
// next to each.
#include "collector/values/observe.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "collector/stacks/capture.h"
#include "tests/support/child_process.h"
#include "tests/support/places.h"

namespace ddpdoctor::values {
namespace {

using model::SeenValue;
using model::ValueRole;
using model::ValueState;

const std::string kProgram = tests::source_file("tests/support/python_decisions.py");

/// By line: the text after "-> ".
std::map<int, std::string> expected(int minor) {
  std::map<int, std::string> out;
  std::ifstream file(kProgram);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (const std::size_t at = line.find("# -> "); at != std::string::npos) {
      const std::string text = line.substr(at + 5);
      const std::size_t newer = text.find("; since 3.12: ");
      out[number] = newer == std::string::npos ? text
                    : minor >= 12              ? text.substr(newer + 14)
                                               : text.substr(0, newer);
    }
  }
  return out;
}

std::vector<SeenValue> values_of(const std::string& python) {
  test::ChildProcess child({python, kProgram}, true);
  if (!child.lines_until("ready")) {
    return {};
  }
  Observer observer(std::chrono::seconds(10));
  std::vector<SeenValue> values;
  const std::array<pid_t, 1> pids{child.pid()};
  stacks::capture(pids, {.native = false, .visitor = [&](stacks::PythonVisit& visit) {
                           values = observer.observe(visit);
                         }});
  return values;
}

std::string said(const SeenValue& seen) {
  switch (seen.state) {
    case ValueState::kKnown:
      return seen.value;
    case ValueState::kStale:
      return "stale now " + seen.value;
    case ValueState::kUnknown:
      break;
  }
  return "unknown: " + seen.reason;
}

class Decisions : public testing::TestWithParam<int> {};

TEST_P(Decisions, ComeOutAsTheProgramSays) {
  const auto installations = test::python_installations(GetParam());
  if (installations.empty()) {
    GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
  }
  for (const test::PythonInstallation& python : installations) {
    const std::vector<SeenValue> values = values_of(python.command);
    ASSERT_FALSE(values.empty()) << python.command;
    for (const auto& [line, text] : expected(GetParam())) {
      const auto found = std::find_if(values.begin(), values.end(), [line = line](const auto& one) {
        return one.line == line && (one.role == ValueRole::kDecision ||
                                    one.role == ValueRole::kLoop || one.role == ValueRole::kCaught);
      });
      EXPECT_EQ(found == values.end() ? "nothing" : said(*found), text)
          << "line " << line << " in " << python.command;
    }
    const auto shown = [&values](const std::string& expression, ValueRole role) {
      const auto found = std::find_if(values.begin(), values.end(), [&](const auto& one) {
        return one.expression == expression && one.role == role;
      });
      return found == values.end() ? std::string("nothing") : found->value;
    };
    const auto held = [&shown](const std::string& expression) {
      return shown(expression, ValueRole::kHeld);
    };
    EXPECT_EQ(held("mode"), "'rw'");
    EXPECT_EQ(held("todo"), "[1, 2]");
    EXPECT_EQ(held("secret_token"), "…");
    EXPECT_EQ(held("count"), "9") << "of a suspended generator";
    EXPECT_EQ(shown("skipped", ValueRole::kTrace), "2") << "only its handler changes it";
    EXPECT_EQ(shown("kept", ValueRole::kTrace), "nothing");
  }
}

INSTANTIATE_TEST_SUITE_P(Python3, Decisions, testing::Range(8, 15));

}  // namespace
}  // namespace ddpdoctor::values
