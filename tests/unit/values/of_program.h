// SPDX-License-Identifier: Apache-2.0
// Runs a program of tests/support until it blocks, and reads values from it.
#pragma once

#include <array>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "collector/stacks/capture.h"
#include "collector/values/observe.h"
#include "tests/support/child_process.h"

namespace ddpdoctor::values {

/// Maps each line to the expected text after "# -> ", for Python 3.`minor`.
inline std::map<int, std::string> expected_of(const std::string& program, int minor) {
  std::map<int, std::string> out;
  std::ifstream file(program);
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

inline std::vector<model::SeenValue> values_of(const std::string& python,
                                               const std::string& program) {
  test::ChildProcess child({python, program}, true);
  if (!child.lines_until("ready")) {
    return {};
  }
  Observer observer(std::chrono::seconds(10));
  std::vector<model::SeenValue> values;
  const std::array<pid_t, 1> pids{child.pid()};
  stacks::capture(pids, {.native = false, .visitor = [&](stacks::PythonVisit& visit) {
                           values = observer.observe(visit);
                         }});
  return values;
}

inline std::string said(const model::SeenValue& seen) {
  switch (seen.state) {
    case model::ValueState::kKnown:
      return seen.value;
    case model::ValueState::kStale:
      return "stale now " + seen.value;
    case model::ValueState::kUnknown:
    case model::ValueState::kDerived:
      break;
  }
  return "unknown: " + seen.reason;
}

}  // namespace ddpdoctor::values
