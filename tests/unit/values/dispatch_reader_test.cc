// SPDX-License-Identifier: Apache-2.0
// Functions that calls run, with every installed interpreter. Comments in the program name the
// expected function of each call.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/places.h"
#include "tests/unit/values/of_program.h"

namespace ddpdoctor::values {
namespace {

using model::SeenValue;

const std::string kProgram = tests::source_file("tests/support/python_callees.py");

class Callees : public testing::TestWithParam<int> {};

TEST_P(Callees, AreTheFunctionsThatTheProgramSays) {
  const auto installations = test::python_installations(GetParam());
  if (installations.empty()) {
    GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
  }
  for (const test::PythonInstallation& python : installations) {
    const std::vector<SeenValue> values = values_of(python.command, kProgram);
    ASSERT_FALSE(values.empty()) << python.command;
    for (const auto& [line, text] : expected_of(kProgram, GetParam())) {
      const auto found = std::find_if(values.begin(), values.end(), [line = line](const auto& one) {
        return one.line == line && one.role == model::ValueRole::kCallee;
      });
      EXPECT_EQ(found == values.end() ? "nothing" : said(*found), text)
          << "line " << line << " in " << python.command;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Python3, Callees, testing::Range(8, 15));

}  // namespace
}  // namespace ddpdoctor::values
