// SPDX-License-Identifier: Apache-2.0
// Decisions of a blocked program, for every interpreter found: the program has the expected value
// next to each.
#include "collector/values/observe.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/places.h"
#include "tests/unit/values/of_program.h"

namespace ddpdoctor::values {
namespace {

using model::SeenValue;
using model::ValueRole;

const std::string kProgram = tests::source_file("tests/support/python_decisions.py");

class Decisions : public testing::TestWithParam<int> {};

TEST_P(Decisions, ComeOutAsTheProgramSays) {
  const auto installations = test::python_installations(GetParam());
  if (installations.empty()) {
    GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
  }
  for (const test::PythonInstallation& python : installations) {
    const std::vector<SeenValue> values = values_of(python.command, kProgram);
    ASSERT_FALSE(values.empty()) << python.command;
    for (const auto& [line, text] : expected_of(kProgram, GetParam())) {
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
    EXPECT_EQ(held("pause"), GetParam() < 14 ? "'now'" : "nothing") << "of a suspended context";
    EXPECT_EQ(shown("skipped", ValueRole::kTrace), "2") << "only its handler changes it";
    EXPECT_EQ(shown("kept", ValueRole::kTrace), "nothing");
  }
}

INSTANTIATE_TEST_SUITE_P(Python3, Decisions, testing::Range(8, 15));

}  // namespace
}  // namespace ddpdoctor::values
